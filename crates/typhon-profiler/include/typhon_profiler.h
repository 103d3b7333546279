/* The profiler for programs in other languages. Exported by every dynamic library that holds the crate typhon-profiler
 * with its feature c-api. All functions may be called from any thread. Times are in nanoseconds of typhon_now_ns(), which
 * is CLOCK_MONOTONIC: in .NET on Linux, Stopwatch.GetTimestamp(). */
#ifndef TYPHON_PROFILER_H
#define TYPHON_PROFILER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Starts the recording that environment and configuration files ask for. Returns 1 if a recording runs now, 0 if none is
 * configured, -1 if it could not start (a line on standard error says why). */
int32_t typhon_init(void);

/* Ends the recording and closes its file. Returns 1 if one ran, 0 if not. */
int32_t typhon_shutdown(void);

uint64_t typhon_now_ns(void);

/* Garbage collections that the program itself reports, in place of those that GcTracing reads from the target. Nothing of
 * it blocks but the opening, which waits for the end of the session with the target. */

/* Returns 1 if collections may be pushed now, 0 if the running recording has none (gate GcTracing), -1 if pushing is open
 * already. Ends with typhon_gc_close() or with the recording. */
int32_t typhon_gc_open(void);
void typhon_gc_close(void);

/* Each returns 1 if it was accepted, 0 if it was dropped: queue full (counted in the trace), or not open. */

/* reason and type are the numbers of the runtime's event GCStart. */
int32_t typhon_gc_start(uint64_t time_ns, uint32_t count, uint32_t generation, uint32_t reason, uint32_t type);

/* Sizes are those after the collection; committed_bytes is 0 if it is not known. */
int32_t typhon_gc_end(uint64_t time_ns, uint32_t count, uint32_t generation, uint64_t pause_ns, uint64_t promoted_bytes,
                      uint64_t gen0_bytes, uint64_t gen1_bytes, uint64_t gen2_bytes, uint64_t loh_bytes,
                      uint64_t poh_bytes, uint64_t committed_bytes);

/* A suspension begins and ends on the same thread. reason is the number of the runtime's event GCSuspendEEBegin; only 1
 * (for a collection) and 6 (for the preparation of one) are recorded. */
int32_t typhon_gc_suspend_begin(uint64_t time_ns, uint64_t thread, uint32_t reason);
int32_t typhon_gc_suspend_end(uint64_t time_ns, uint64_t thread);

#ifdef __cplusplus
}
#endif

#endif
