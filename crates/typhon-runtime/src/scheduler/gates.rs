//! May a system run in this tick, and if not, why? One answer for every way of running a schedule (brief 04 §2.8).

use super::worker::{Turn, Verdict};
use crate::overload::Decision;
use crate::schedule::MAX_CHUNKS;
use crate::system::{Chunks, SystemError};
use typhon_trace::event::SkipReason;

/// A gate that could not answer.
#[derive(Debug)]
pub(super) struct GateFault {
    /// Which: `run_if`, `should_run` or `prepare`.
    pub(super) gate: &'static str,
    pub(super) error: SystemError,
}

/// What the gates of one system ask, in the order in which they are asked. A question that is not reached is not asked:
/// user code behind it does not run.
pub(super) trait Gates {
    /// The system's own gates.
    fn run_if(&mut self) -> Result<bool, GateFault>;
    /// The hook of a chunked system.
    fn should_run(&mut self) -> Result<bool, GateFault>;
    /// Is it the system's turn, as far as divisors and overload are concerned?
    fn due(&mut self) -> Decision;
    /// The chunks of this tick.
    fn prepare(&mut self) -> Result<Chunks, GateFault>;
    /// Does the system consume queues, and are all of them empty?
    fn is_without_events(&mut self) -> bool;
    /// Chunks as declared.
    fn declared_chunks(&self) -> u32;
}

/// The verdict, and the fault if it is one.
pub(super) fn decide(turn: Turn, gates: &mut impl Gates) -> (Verdict, Option<GateFault>) {
    match ask(turn, gates) {
        Ok(Ok(chunks)) => (Verdict::Run(chunks), None),
        Ok(Err(reason)) => (Verdict::Skip(reason.0), None),
        Err(fault) => (Verdict::Skip(SkipReason::EXCEPTION.0), Some(fault)),
    }
}

fn ask(turn: Turn, gates: &mut impl Gates) -> Result<Result<u32, SkipReason>, GateFault> {
    if turn.is_aborted {
        return Ok(Err(SkipReason::TICK_ABORTED));
    }
    if turn.predecessor_failed {
        return Ok(Err(SkipReason::DEPENDENCY_FAILED));
    }
    if !gates.run_if()? || !gates.should_run()? {
        return Ok(Err(SkipReason::SHOULD_RUN_FALSE));
    }
    if let Some(reason) = gates.due().skip_reason() {
        return Ok(Err(reason));
    }
    let chunks = match gates.prepare()? {
        Chunks::Skip | Chunks::Count(0) => return Ok(Err(SkipReason::EMPTY_INPUT)),
        Chunks::Declared => gates.declared_chunks(),
        Chunks::Count(count) if count > MAX_CHUNKS => return Err(too_many_chunks(count)),
        Chunks::Count(count) => count,
    };
    if gates.is_without_events() {
        return Ok(Err(SkipReason::EMPTY_EVENTS));
    }
    Ok(Ok(chunks))
}

#[cold]
fn too_many_chunks(count: u32) -> GateFault {
    let error = format!("{count} chunks are asked for; {MAX_CHUNKS} are possible").into();
    GateFault { gate: "prepare", error }
}

/// Does what became of a system fail its successors? Being left out for any other reason does not (B-39).
pub(super) fn is_failure(outcome: u8) -> bool {
    outcome >= SkipReason::EXCEPTION.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers, and which questions were asked.
    struct Script {
        run_if: Result<bool, &'static str>,
        should_run: Result<bool, &'static str>,
        due: Decision,
        prepare: Result<Chunks, &'static str>,
        is_without_events: bool,
        asked: Vec<&'static str>,
    }

    impl Default for Script {
        fn default() -> Self {
            let (run_if, should_run) = (Ok(true), Ok(true));
            let prepare = Ok(Chunks::Declared);
            Self {
                run_if,
                should_run,
                due: Decision::Run,
                prepare,
                is_without_events: false,
                asked: Vec::new(),
            }
        }
    }

    impl Script {
        fn answer<T: Copy>(
            &mut self,
            gate: &'static str,
            answer: Result<T, &'static str>,
        ) -> Result<T, GateFault> {
            self.asked.push(gate);
            answer.map_err(|error| GateFault { gate, error: error.into() })
        }
    }

    impl Gates for Script {
        fn run_if(&mut self) -> Result<bool, GateFault> {
            self.answer("run_if", self.run_if)
        }

        fn should_run(&mut self) -> Result<bool, GateFault> {
            self.answer("should_run", self.should_run)
        }

        fn due(&mut self) -> Decision {
            self.asked.push("due");
            self.due
        }

        fn prepare(&mut self) -> Result<Chunks, GateFault> {
            self.answer("prepare", self.prepare)
        }

        fn is_without_events(&mut self) -> bool {
            self.asked.push("events");
            self.is_without_events
        }

        fn declared_chunks(&self) -> u32 {
            3
        }
    }

    const QUESTIONS: [&str; 5] = ["run_if", "should_run", "due", "prepare", "events"];

    /// The verdict, and how many of the questions were asked for it.
    fn decide_with(turn: Turn, mut script: Script) -> (Verdict, usize) {
        let (verdict, fault) = decide(turn, &mut script);
        assert_eq!(fault.is_some(), verdict == Verdict::Skip(6));
        let asked = script.asked.len();
        assert_eq!(script.asked, QUESTIONS[..asked]);
        (verdict, asked)
    }

    #[test]
    fn gates_are_asked_in_order_and_only_as_far_as_needed() {
        let free = Turn { from: None, predecessor_failed: false, is_aborted: false };
        let failed = Turn { predecessor_failed: true, ..free };
        let aborted = Turn { is_aborted: true, ..failed };
        let script = Script::default;
        let cases = [
            (aborted, script(), Verdict::Skip(8), 0),
            (failed, script(), Verdict::Skip(7), 0),
            (free, Script { run_if: Ok(false), ..script() }, Verdict::Skip(1), 1),
            (free, Script { run_if: Err("no"), ..script() }, Verdict::Skip(6), 1),
            (free, Script { should_run: Ok(false), due: Decision::Shed, ..script() }, Verdict::Skip(1), 2),
            (free, Script { should_run: Err("no"), ..script() }, Verdict::Skip(6), 2),
            (free, Script { due: Decision::Divided, prepare: Err("no"), ..script() }, Verdict::Skip(4), 3),
            (free, Script { due: Decision::Shed, prepare: Err("no"), ..script() }, Verdict::Skip(5), 3),
            (
                free,
                Script { prepare: Ok(Chunks::Skip), is_without_events: true, ..script() },
                Verdict::Skip(2),
                4,
            ),
            (free, Script { prepare: Ok(Chunks::Count(0)), ..script() }, Verdict::Skip(2), 4),
            (free, Script { prepare: Err("no"), ..script() }, Verdict::Skip(6), 4),
            (free, Script { prepare: Ok(Chunks::Count(MAX_CHUNKS + 1)), ..script() }, Verdict::Skip(6), 4),
            (free, Script { is_without_events: true, ..script() }, Verdict::Skip(3), 5),
            (free, script(), Verdict::Run(3), 5),
            (free, Script { prepare: Ok(Chunks::Count(7)), ..script() }, Verdict::Run(7), 5),
        ];
        for (at, (turn, script, verdict, asked)) in cases.into_iter().enumerate() {
            assert_eq!(decide_with(turn, script), (verdict, asked), "case {at}");
        }
    }

    #[test]
    fn b39_only_failure_propagates() {
        let failing: Vec<_> = (0..=8).filter(|&outcome| is_failure(outcome)).collect();
        assert_eq!(failing, [6, 7, 8]);
    }
}
