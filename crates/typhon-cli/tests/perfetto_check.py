#!/usr/bin/env python3
"""Checks a Perfetto export against the recording it was made of.

usage: perfetto_check.py EXPORT RECORDS INFO

EXPORT is parsed with the protos that Perfetto publishes (pip install perfetto). RECORDS is the output of
`typhon trace dump --format jsonl --time raw`, INFO that of `typhon trace info --json`, both of the recording.
Prints a summary, or says what is wrong and exits with 1.
"""

import json
import sys
from collections import Counter, defaultdict

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

GC_KINDS = {7, 8, 75}
COMPLETION_OF = {56: 51, 57: 52, 58: 54}
TRACK_EVENT = protos.TrackEvent


def fail(message):
    sys.exit(f"wrong: {message}")



def counter_unit(name, value_kind):
    """Perfetto's unit: bytes 3, count 2, none 0. The encoding alone does not tell bytes from totals."""
    if name.endswith("Bytes"):
        return 3
    return 2 if value_kind in (0, 1) and not name.endswith("Ticks") else 0


class Export:
    """What a viewer makes of the file."""

    def __init__(self, path):
        trace = protos.Trace()
        with open(path, "rb") as file:
            trace.ParseFromString(file.read())
        self.tracks = {}
        self.events = defaultdict(list)
        self.slices = defaultdict(Counter)
        self.instants = defaultdict(Counter)
        self.counters = defaultdict(list)
        self.flows = defaultdict(set)
        self.interned = {"event_names": {}, "event_categories": {}, "debug_annotation_names": {}}
        for index, packet in enumerate(trace.packet):
            self.packet(packet, is_first=index == 0)
        for track, events in self.events.items():
            self.walk(track, events)

    def packet(self, packet, is_first):
        is_cleared = packet.sequence_flags & 1 != 0
        if is_cleared != is_first:
            fail("interned data is reset somewhere else than at the start")
        for table, names in self.interned.items():
            for entry in getattr(packet.interned_data, table):
                if entry.iid in names or entry.iid == 0:
                    fail(f"{table}: id {entry.iid} is given twice or 0")
                names[entry.iid] = entry.name
        if packet.HasField("track_descriptor"):
            descriptor = packet.track_descriptor
            if descriptor.uuid in self.tracks or descriptor.uuid == 0:
                fail(f"track {descriptor.uuid} is described twice or 0")
            if descriptor.parent_uuid and descriptor.parent_uuid not in self.tracks:
                fail(f"track {descriptor.uuid} has an unknown parent")
            self.tracks[descriptor.uuid] = descriptor
        if packet.HasField("track_event"):
            event = packet.track_event
            if event.track_uuid not in self.tracks:
                fail(f"an event of track {event.track_uuid}, which is not described")
            self.events[event.track_uuid].append((packet.timestamp, event))

    def home(self, uuid):
        """The lane that a track shows: overlap rows belong to their parent."""
        track = self.tracks[uuid]
        if track.HasField("thread"):
            return track.thread.thread_name
        if track.parent_uuid and self.tracks[track.parent_uuid].HasField("process"):
            return track.name
        return self.home(track.parent_uuid)

    def described(self, event):
        name = event.name or self.interned["event_names"].get(event.name_iid)
        if name is None:
            fail(f"an event without a name: {event}")
        if [iid for iid in event.category_iids if iid not in self.interned["event_categories"]]:
            fail("an unknown category")
        labels = self.interned["debug_annotation_names"]
        annotations = tuple(sorted(labels[annotation.name_iid] for annotation in event.debug_annotations))
        return name, annotations

    def walk(self, uuid, events):
        """Sorts by time, keeping the order of equal ones, and pairs beginnings with ends as a viewer does."""
        home = self.home(uuid)
        stack = []
        for timestamp, event in sorted(events, key=lambda pair: pair[0]):
            if event.type == TRACK_EVENT.TYPE_SLICE_BEGIN:
                stack.append((timestamp, self.described(event)))
                self.flows[self.described(event)[0]] |= set(event.flow_ids)
            elif event.type == TRACK_EVENT.TYPE_SLICE_END:
                if not stack:
                    fail(f"{home}: an end without a beginning at {timestamp}")
                start, described = stack.pop()
                self.slices[home][(start, timestamp - start, *described)] += 1
            elif event.type == TRACK_EVENT.TYPE_INSTANT:
                self.instants[home][(timestamp, *self.described(event))] += 1
            elif event.type == TRACK_EVENT.TYPE_COUNTER:
                value = event.counter_value
                if event.HasField("double_counter_value"):
                    value = event.double_counter_value
                self.counters[(home, self.tracks[uuid].counter.unit)].append((timestamp, value))
            else:
                fail(f"{home}: event of type {event.type}")
        if stack:
            fail(f"{home}: {len(stack)} slices do not end")


class Source:
    """What must be in the export."""

    def __init__(self, records, info):
        self.frequency = info["clock"]["frequency"]
        self.systems = {system["index"]: system["name"] for system in info["systems"] or []}
        self.slices = defaultdict(Counter)
        self.instants = defaultdict(Counter)
        self.counters = defaultdict(list)
        self.claims = defaultdict(list)
        for record in sorted((r for r in records if r["id"] == 77), key=lambda r: r["ts"]):
            claims = self.claims[record["slot"]]
            if not claims or claims[-1][1] != record["fields"]:
                claims.append((record["ts"], record["fields"]))
        for record in records:
            self.record(record)
        self.tick_starts = {record["ts"] for record in records if record["id"] == 0}

    def ns(self, ticks):
        return ticks * 1_000_000_000 // self.frequency

    def lane(self, record):
        if record["id"] in GC_KINDS:
            return "GC"
        claims = self.claims.get(record["slot"])
        if not claims:
            return f"slot {record['slot']}"
        before = [fields for start, fields in claims if start <= record["ts"]]
        return (before[-1] if before else claims[0][1])["name"] or f"slot {record['slot']}"

    def name(self, record):
        fields = record.get("fields") or {}
        if record["id"] == 10 and fields.get("systemIdx") in self.systems:
            return self.systems[fields["systemIdx"]]
        if record["id"] == 246:
            return fields.get("name", "NamedSpan")
        return record["kind"] or f"kind {record['id']}"

    def record(self, record):
        fields = record.get("fields") or {}
        labels = {label for label in fields if not (label.endswith("Name") and label[:-4] in fields)}
        described = (self.name(record), tuple(sorted(labels - {"gauges"})))
        start = self.ns(record["ts"])
        if "dur" in record:
            end = self.ns(record["ts"] + max(record["dur"], 0))
            self.slices[self.lane(record)][(start, end - start, *described)] += 1
            return
        self.instants[self.lane(record)][(start, *described)] += 1
        for gauge in fields.get("gauges", []):
            name = gauge.get("gaugeName", f"gauge 0x{gauge['gauge']:04x}")
            unit = counter_unit(name, gauge["valueKind"])
            self.counters[(name, unit)].append((start, gauge["value"]))


def compare(what, got, expected):
    for lane in sorted(set(got) | set(expected), key=str):
        if got.get(lane) != expected.get(lane):
            extra = list((Counter(got.get(lane, ())) - Counter(expected.get(lane, ()))).items())[:2]
            missing = list((Counter(expected.get(lane, ())) - Counter(got.get(lane, ()))).items())[:2]
            fail(f"{what} of {lane!r}: too many {extra}, missing {missing}")


def check_flows(export, records):
    """An arrow for every completion and for every span whose parent ran on another thread."""
    flows = set().union(*export.flows.values()) if export.flows else set()
    wanted = set()
    for record in records:
        if record["id"] in COMPLETION_OF:
            wanted.add(int(record["spanId"], 16))
        parent = int(record.get("parentSpanId") or "0", 16)
        if parent and parent >> 56 != record["slot"]:
            wanted.add(parent)
    if flows - wanted - {int(r["spanId"], 16) for r in records if r["id"] in COMPLETION_OF.values()}:
        fail("arrows between spans that have nothing to do with each other")
    if wanted - flows:
        fail(f"{len(wanted - flows)} arrows are missing")
    return len(wanted)


def main():
    export = Export(sys.argv[1])
    with open(sys.argv[2], encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    with open(sys.argv[3], encoding="utf-8") as file:
        source = Source(records, json.load(file))
    ticks = export.slices.pop("Ticks", Counter())
    if len({start for start, *_ in ticks}) != len(source.tick_starts):
        fail(f"{len(ticks)} ticks instead of {len(source.tick_starts)}")
    compare("slices", export.slices, source.slices)
    compare("instants", export.instants, source.instants)
    compare("samples", {k: sorted(v) for k, v in export.counters.items()},
            {k: sorted(v) for k, v in source.counters.items()})
    arrows = check_flows(export, records)
    print(json.dumps({
        "slices": sum(sum(lane.values()) for lane in export.slices.values()),
        "instants": sum(sum(lane.values()) for lane in export.instants.values()),
        "samples": sum(len(samples) for samples in export.counters.values()),
        "ticks": sum(ticks.values()),
        "arrows": arrows,
        "records": len(records),
    }))


if __name__ == "__main__":
    main()
