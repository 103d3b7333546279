/** Where this span stands among all of its name. */

import { count, duration } from "../../format";
import type { EventDetail, Histogram } from "../../protocol/types";
import { Bars } from "../Bars";
import { type Scale, logBins, logShare } from "../histogram";
import { Section } from "./Facts";

const BINS_MAX = 34;
const [WIDTH, HEIGHT] = [340, 40];

/** As many bins as the buckets are fine enough for: a bin narrower than a bucket would leave gaps. */
function binsFor(buckets: Histogram["buckets"], { leastNs, mostNs }: Scale): number {
  const widest = Math.max(...buckets.map(({ fromNs, toNs }) => Math.log(Math.max(toNs, 1) / Math.max(fromNs, 1))));
  return Math.min(Math.max(Math.floor(Math.log(mostNs / leastNs) / Math.max(widest, 1e-6) + 1e-6), 1), BINS_MAX);
}

/** The value below which a share of the values lies, from buckets. */
function quantile({ buckets, count }: Histogram, share: number): number {
  let left = Math.max(1, Math.ceil(count * share));
  for (const bucket of buckets) {
    left -= bucket.count;
    if (left <= 0) return Math.max(bucket.fromNs, bucket.toNs - 1);
  }
  return buckets[buckets.length - 1]?.toNs ?? 0;
}

export function Distribution(props: { of: EventDetail; histogram: Histogram | null }) {
  const { of, histogram } = props;
  if (of.durationNs === null || histogram === null || histogram.count < 2) return null;
  const [first, last] = [histogram.buckets[0], histogram.buckets[histogram.buckets.length - 1]];
  if (first === undefined || last === undefined) return null;
  const scale = { leastNs: Math.max(first.fromNs, 1), mostNs: Math.max(last.toNs, 2) };
  const bins = binsFor(histogram.buckets, scale);
  const share = logShare(of.durationNs, scale);
  const marked = Math.min(Math.floor(share * bins), bins - 1);
  const [p50, p95] = [quantile(histogram, 0.5), quantile(histogram, 0.95)];
  const approx = histogram.approx ? "≈ " : "";
  return (
    <Section title={`Distribution of ${count(histogram.count)} alike`} aside="log scale">
      <div class="distribution">
        <span class="distribution-mark" style={{ left: `${((marked + 0.5) / bins) * 100}%` }} aria-hidden="true">
          ▾
        </span>
        <Bars
          bins={logBins(histogram.buckets, scale, bins)}
          width={WIDTH}
          height={HEIGHT}
          marked={marked}
          label={`Durations from ${duration(scale.leastNs)} to ${duration(scale.mostNs)}, P50 ${duration(p50)}, P95 ${duration(p95)}, this one ${duration(of.durationNs)}`}
        />
        <div class="distribution-axis">
          <span>{duration(scale.leastNs)}</span>
          <span>
            P50 {approx}
            {duration(p50)} · P95 {approx}
            {duration(p95)}
          </span>
          <span>{duration(Math.max(last.toNs - 1, last.fromNs))}</span>
        </div>
      </div>
    </Section>
  );
}
