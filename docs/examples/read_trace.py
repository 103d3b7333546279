#!/usr/bin/env python3
"""Read a .typhon-trace file with nothing but the Python standard library.

Written from docs/trace-format.md alone, as the proof that the page is complete; section numbers refer to it.

usage: read_trace.py FILE [--json]
"""

import json
import struct
import sys
import uuid

MAGIC = 0x52545954
SECTIONS = {
    0x4E415053: "spanNames",
    0x424C4653: "fileTable",
    0x4E4D4C53: "sourceLocationManifest",
    0x54535351: "querySourceStringTable",
    0x54464451: "queryDefinitionTable",
    0x53555043: "cpuSampleSection",
}
SPAN_NAMES = 0x4E415053
CHECKSUMS = ["typhon.crc32c." + name for name in ("tables", "block", "header", "trailer")]

# Section 7: everything that is not listed is an instant.
SPAN_KINDS = set()
for part in (
    "10 20-23 30-35 40-43 50-64 75 80-89 117-126 136 138 139 143 149 150 152 155 159 160 163-165 173-175 177 179 181 184 "
    "187-190 192-196 198 199 201 204 205 209 210 214-216 219 221-224 226 227 229-232 235-241 243 245 246 249-253"
).split():
    first, _, last = part.partition("-")
    SPAN_KINDS.update(range(int(first), int(last or first) + 1))


class Damaged(Exception):
    """The bytes do not follow the format."""


class Cursor:
    """Reads the basic types of section 2, never past `end`."""

    def __init__(self, data, at=0, end=None):
        self.data, self.at, self.end = data, at, len(data) if end is None else end

    def take(self, count):
        if self.at + count > self.end:
            raise Damaged(f"cut at byte {self.at}: {count} more bytes expected")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, form):
        return struct.unpack("<" + form, self.take(struct.calcsize("<" + form)))[0]

    def sstr(self):
        return self.take(self.number("B")).decode("utf-8", "replace")

    def vstr(self):
        return self.take(self.number("H")).decode("utf-8", "replace")

    def sarr(self):
        return [self.sstr() for _ in range(self.number("H"))]

    def numbers(self, count_form, form):
        return [self.number(form) for _ in range(self.number(count_form))]

    def fields(self, forms):
        """Several fields in a row: a struct letter, `s` for sstr, `S` for sarr."""
        special = {"s": self.sstr, "S": self.sarr}
        return [special[form]() if form in special else self.number(form) for form in forms]


def read_header(data):
    """Section 3."""
    if len(data) < 4 or struct.unpack_from("<I", data)[0] != MAGIC:
        raise Damaged("not a Typhon trace")
    if len(data) < 207:
        raise Damaged("header cut")
    cursor = Cursor(data)
    header = {}

    def read(form, *names):
        for name in names:
            header[name] = cursor.number(form)

    read("I", "magic")
    read("H", "version", "flags")
    if header["version"] != 12:
        raise Damaged(f"version {header['version']}, this reader knows 12")
    read("q", "timestampFrequency")
    read("f", "baseTickRate")
    read("B", "workerCount")
    read("H", "systemCount", "archetypeCount", "componentTypeCount", "trackCount", "dagCount")
    read("q", "createdUtcTicks", "samplingSessionStartQpc", "fileTableOffset", "sourceLocationManifestOffset")
    read("q", "querySourceStringTableOffset", "queryDefinitionTableOffset", "cpuSampleSectionOffset")
    header["databaseId"] = str(uuid.UUID(bytes_le=bytes(cursor.take(16))))
    header["databaseName"] = cursor.take(64).split(b"\0")[0].decode("utf-8", "replace")
    read("q", "tsnMin", "tsnMax", "durationTicks")
    read("I", "tickCount")
    read("Q", "schemaFingerprint")
    read("H", "reserved0", "reserved1")
    return header


def read_system(cursor):
    system = cursor.fields("HsBB?B")
    return system + [cursor.numbers("B", "H"), cursor.numbers("B", "H")] + cursor.fields("s?SSSSSSSSSSSSH")


def read_component(cursor):
    component = cursor.fields("isiB?iiiHHs")
    return component + [[cursor.fields("isBBiiiBBBffIs") for _ in range(cursor.number("H"))]]


def read_archetype(cursor):
    archetype = cursor.fields("HsiH") + [cursor.numbers("H", "H")] + cursor.fields("B")
    archetype += [cursor.numbers("B", "i")] + cursor.fields("HH") + [cursor.numbers("H", "H")] + cursor.fields("B")
    return archetype + [cursor.fields("HIIIIH") if cursor.number("?") else None]


# Section 4: name, type of the count, how one entry is read.
TABLES = [
    ("systems", "H", read_system),
    ("archetypes", "H", lambda cursor: cursor.fields("HsH")),
    ("componentTypes", "H", lambda cursor: cursor.fields("is")),
    ("tracks", "H", lambda cursor: cursor.fields("siS")),
    ("dags", "H", lambda cursor: cursor.fields("isiS")),
    ("componentDefinitions", "H", read_component),
    ("archetypeDefinitions", "H", read_archetype),
    ("indexCatalog", "H", lambda cursor: cursor.fields("iiB???")),
    ("runtimeConfig", "?", lambda cursor: cursor.fields("iiii")),
    ("eventQueues", "H", lambda cursor: cursor.fields("Hsis")),
    ("resourceGraph", "i", lambda cursor: cursor.fields("qsBqqB")),
]


def read_tables(cursor):
    return {name: [entry(cursor) for _ in range(cursor.number(count))] for name, count, entry in TABLES}


def extended(data, at, length):
    """An LZ4 length: 15 is continued by bytes up to the first that is not 255."""
    if length == 15:
        while True:
            length += data[at]
            at += 1
            if data[at - 1] != 255:
                break
    return length, at


def decompress(data, expected):
    """Section 5, LZ4."""
    out, at = bytearray(), 0
    try:
        while at < len(data):
            token = data[at]
            literals, at = extended(data, at + 1, token >> 4)
            if at + literals > len(data):
                raise Damaged("LZ4 literals run past the block")
            out += data[at : at + literals]
            at += literals
            if at == len(data):
                break
            distance = data[at] | data[at + 1] << 8
            length, at = extended(data, at + 2, token & 15)
            if not 1 <= distance <= len(out) or len(out) + length + 4 > expected:
                raise Damaged("LZ4 match outside the block")
            for _ in range(length + 4):
                out.append(out[-distance])
    except IndexError:
        raise Damaged("LZ4 data ends early") from None
    if len(out) != expected:
        raise Damaged(f"LZ4 data gives {len(out)} bytes, expected {expected}")
    return bytes(out)


def walk_records(block):
    """Section 6 and 7: (kind, slot, start, duration or None, payload) of each record."""
    at = 0
    while at + 12 <= len(block):
        size, kind, slot, start = struct.unpack_from("<HBBq", block, at)
        if not 12 <= size <= 65534 or at + size > len(block):
            raise Damaged(f"record of size {size} at byte {at} of its block")
        record, duration, payload_at = block[at : at + size], None, 12
        if kind in SPAN_KINDS and size >= 37:
            duration, flags = struct.unpack_from("<q", record, 12)[0], record[36]
            payload_at = 37 + (16 if flags & 1 else 0) + (2 if flags & 2 else 0)
        yield kind, slot, start, duration, record[payload_at:]
        at += size
    if at != len(block):
        raise Damaged(f"{len(block) - at} bytes behind the last record")


def read_span_names(cursor):
    return {cursor.number("H"): cursor.sstr() for _ in range(cursor.number("H"))}


# Section 10: what one section holds.
def read_section(cursor):
    name = SECTIONS.get(cursor.number("I"))
    if name == "fileTable":
        return name, [(cursor.number("H"), cursor.vstr()) for _ in range(cursor.number("I"))]
    if name == "sourceLocationManifest":
        return name, [cursor.fields("HHIBs") for _ in range(cursor.number("I"))]
    if name == "querySourceStringTable":
        return name, [cursor.vstr() for _ in range(cursor.number("I"))]
    if name == "cpuSampleSection":
        samples = [cursor.fields("qBBI") for _ in range(cursor.number("I"))]
        stacks = [cursor.numbers("H", "H") for _ in range(cursor.number("I"))]
        frames = [cursor.fields("HHIs") for _ in range(cursor.number("I"))]
        return name, {"samples": samples, "stacks": stacks, "frames": frames}
    return None, None


def crc32c(data, table=[]):
    """Section 11."""
    if not table:
        for value in range(256):
            for _ in range(8):
                value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
            table.append(value)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


class Trace:
    """A whole file, read front to back."""

    def __init__(self, data):
        self.data = data
        self.header = read_header(data)
        self.tables, self.blocks, self.span_names, self.sections, self.notices = {}, [], {}, {}, []
        self.counts, self.first_start, self.last_end = {}, None, None
        self.checksum_names, self.is_closing_block_sound = None, False
        cursor = Cursor(data, 207)
        try:
            self.tables = read_tables(cursor)
            self.read_blocks(cursor)
        except Damaged as damage:
            self.notices.append(str(damage))
        self.read_trailers()

    def read_blocks(self, cursor):
        """Section 5. `chain` is where the bytes begin that the next block's checksum covers."""
        chain = 207
        while cursor.at < cursor.end:
            start, word = cursor.at, cursor.number("i")
            if word == SPAN_NAMES:
                self.span_names.update(read_span_names(cursor))
                continue
            if word == 0 and any(self.data[start:]):
                raise Damaged(f"no block at offset {start}")
            if word == 0 or word in SECTIONS:
                break
            compressed, records = cursor.number("i"), cursor.number("i")
            if not (1 <= word <= 1 << 24 and 1 <= compressed <= word + word // 255 + 16 and 0 <= records <= word // 12):
                raise Damaged(f"no block at offset {start}")
            data = cursor.take(compressed)
            if not self.blocks:
                self.find_checksum_names()
            try:
                self.read_block(decompress(data, word), records, data, range(chain, start))
            except Damaged as damage:
                self.notices.append(f"block at offset {start}: {damage}")
            self.blocks.append((start, records, word))
            chain = start
        if not self.blocks:
            self.find_checksum_names()
        if self.checksum_names and self.closed() and not self.is_closing_block_sound:
            self.notices.append("no sound closing block")

    def read_block(self, block, stated, stored, covered):
        records = list(walk_records(block))
        if len(records) != stated:
            self.notices.append(f"{len(records)} records in a block of {stated}")
        if self.checksum_names:
            markers = self.markers(records)
            self.check(markers, block, stored, covered)
            records = records[len(markers) :]
        for kind, _, start, duration, _ in records:
            self.counts[kind] = self.counts.get(kind, 0) + 1
            if self.first_start is None or start < self.first_start:
                self.first_start = start
            if self.last_end is None or start + (duration or 0) > self.last_end:
                self.last_end = start + (duration or 0)

    def find_checksum_names(self):
        """Section 11: the names in front of the first block switch the checks on."""
        names = {name: key for key, name in self.span_names.items() if name in CHECKSUMS}
        if len(names) == len(CHECKSUMS):
            self.checksum_names = {key: name for name, key in names.items()}
        elif names or self.header["reserved0"] == 1:
            self.notices.append("checksum names are missing")

    def markers(self, records):
        """Section 11: the checksum marker at the start of a block, or the three of a closing block."""
        found = []
        for kind, slot, start, _, payload in records[:3]:
            name_id, value = struct.unpack("<iI", payload) if kind == 6 and len(payload) == 8 else (-1, 0)
            if name_id not in self.checksum_names:
                break
            found.append((self.checksum_names[name_id], value, slot, start))
        names = [name for name, _, _, _ in found]
        return found if len(records) == 3 and names[1:] == CHECKSUMS[2:] else found[:1]

    def check(self, markers, block, stored, covered):
        """Section 11: compares the checksums of a block with what they cover."""
        due = CHECKSUMS[1] if self.blocks else CHECKSUMS[0]
        if [name for name, _, _, _ in markers[:1]] != [due]:
            self.notices.append(f"no checksum in the block at offset {covered.stop}")
        end = covered.stop + 12 + len(stored)
        for name, value, _, _ in markers:
            if crc32c(self.covered_by(name, covered, end)) != value:
                self.notices.append(f"{name} in the block at offset {covered.stop} is wrong")
        if len(markers) == 3:
            same = len({(slot, start) for _, _, slot, start in markers}) == 1
            self.is_closing_block_sound = same and stored == b"\xf0\x2d" + block

    def covered_by(self, name, covered, end):
        if name == CHECKSUMS[0]:
            data = bytearray(self.data[207 : covered.stop])
            for at in self.routing_id_offsets():
                data[at - 207 : at - 205] = b"\xff\xff"
            return data
        if name == CHECKSUMS[1]:
            return self.data[covered.start : covered.stop]
        if name == CHECKSUMS[2]:
            return self.data[:47] + bytes(40) + self.data[87:207]
        return self.data[end:]

    def routing_id_offsets(self):
        """Where table 2 keeps its routing ids: the last two bytes of each entry."""
        cursor = Cursor(self.data, 207)
        for _ in range(cursor.number("H")):
            read_system(cursor)
        for _ in range(cursor.number("H")):
            cursor.fields("HsH")
            yield cursor.at - 2

    def read_trailers(self):
        """Section 10: sections that the header points to."""
        for name in SECTIONS.values():
            offset = self.header.get(name + "Offset", 0)
            if offset == 0:
                continue
            try:
                if not 207 < offset < len(self.data):
                    raise Damaged("offset outside the file")
                found, content = read_section(Cursor(self.data, offset))
                if found != name:
                    raise Damaged("another magic")
                self.sections[name] = content
            except Damaged as damage:
                self.notices.append(f"{name} at offset {offset}: {damage}")

    def closed(self):
        """Section 15."""
        filled = [name for name in self.header if name in ("tsnMax", "durationTicks") or name.endswith("Offset")]
        return any(self.header[name] for name in filled)

    def summary(self):
        sections = {name: len(content) for name, content in self.sections.items() if name != "cpuSampleSection"}
        if "cpuSampleSection" in self.sections:
            sections["cpuSampleSection"] = len(self.sections["cpuSampleSection"]["samples"])
        return {
            "header": self.header,
            "closed": self.closed(),
            "tables": {name: len(entries) for name, entries in self.tables.items()},
            "blocks": len(self.blocks),
            "records": sum(self.counts.values()),
            "ticks": self.counts.get(0, 0),
            "countsByKind": {str(kind): self.counts[kind] for kind in sorted(self.counts)},
            "spanNames": {str(key): name for key, name in sorted(self.span_names.items())},
            "sections": sections,
            "notices": self.notices,
        }


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    try:
        with open(sys.argv[1], "rb") as file:
            summary = Trace(file.read()).summary()
    except (OSError, Damaged) as error:
        sys.exit(f"error: {error}")
    if sys.argv[2:] == ["--json"]:
        print(json.dumps(summary))
        return
    for name, value in summary["header"].items():
        print(f"{name:30} {value}")
    print(f"\n{summary['records']} records in {summary['blocks']} blocks, {summary['ticks']} ticks")
    print(f"tables    {summary['tables']}\nsections  {summary['sections']}")
    for kind, count in sorted(summary["countsByKind"].items(), key=lambda item: -item[1]):
        print(f"  kind {kind:>3} {count:>10}")
    for notice in summary["notices"]:
        print(f"! {notice}")


if __name__ == "__main__":
    main()
