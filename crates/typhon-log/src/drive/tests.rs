//! Waits that end as they should. Whatever could wait for ever is bounded, so that a mistake is a failure.

use super::*;
use crate::claim::Place;
use crate::stream::{Class, Cursor};
use crate::waiters::Waiters;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::Duration;

const START: Place = Place { position: 4096, tsn: 1 };
/// Where the first frame of [`appended`] ends.
const END: u64 = START.position + 32;

/// What comes of something that may take some time, and must not take for ever.
#[track_caller]
fn bounded<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    let (sender, receiver) = mpsc::channel();
    let thread = std::thread::spawn(move || sender.send(work()));
    match receiver.recv_timeout(Duration::from_secs(60)) {
        Ok(result) => result,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("it hangs"),
        Err(mpsc::RecvTimeoutError::Disconnected) => match thread.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(_) => unreachable!("the result was sent"),
        },
    }
}

/// A stream with one frame.
fn appended() -> Stream {
    let stream = Stream::new(START, 4096);
    assert!(stream.try_reserve(32, Class::Commit));
    stream.append(32, true, |_| [32, 0, 0, 0], b"");
    stream
}

struct Nothing;

impl Drive for Nothing {
    fn step(&mut self, _: &Stream) -> Step {
        Step::Idle
    }
}

/// Found by thinking: a thread that was called to write, and sees that its own frame is durable, must not keep the
/// call to itself. It takes five preemptions of three threads, more than the models explore.
#[test]
fn a_call_to_write_is_passed_on_by_whoever_leaves() {
    let driven = Driven::new(Stream::new(START, 4096), Nothing, true, false);
    let waiters = &driven.stream.waiters;
    let first = waiters.register(4104);
    waiters.call();
    // Of the two that sleep on one word, this one has not seen the first call.
    let second = waiters.register(4112);
    driven.leave(&first);
    assert_eq!(second.park(Deadline::EXPIRED), Turn::Called);
}

/// A disk without room, and how often it was asked.
struct NoRoom(u64);

impl Drive for NoRoom {
    fn step(&mut self, _: &Stream) -> Step {
        self.0 += 1;
        Step::Full
    }
}

/// Two threads wait, and a third tries again now and then: they must not call each other, or themselves, in turns.
#[test]
fn who_waits_while_there_is_no_room_sleeps() {
    for waiters_write in [true, false] {
        let driven = Driven::new(appended(), NoRoom(0), waiters_write, true);
        let timeout = Duration::from_millis(100);
        let steps = bounded(move || {
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        let deadline = Deadline::from_timeout(timeout);
                        let waited = driven.wait_durable(END, deadline, || driven.write_appended());
                        assert_eq!(waited, Err(NotDurable::Expired));
                    });
                }
            });
            driven.hold().0
        });
        assert!(steps < 20, "{steps} attempts");
    }
}

/// The first of a crowd has an alarm, nobody is called who need not be, the last one writes.
#[test]
fn the_last_of_a_crowd_writes() {
    let waiters = Waiters::new();
    assert!(waiters.arrive(8).is_none(), "nobody is expected");
    let served: Vec<_> = (0..2).map(|_| waiters.register(8)).collect();
    waiters.begin_group();
    let late = waiters.arrive(16).expect("somebody writes already");
    assert!(!late.has_alarm(), "whoever writes calls the next");
    waiters.release(8, Duration::from_micros(50));
    assert!(served.iter().all(|ticket| ticket.park(Deadline::EXPIRED) == Turn::Served));
    assert_eq!(late.park(Deadline::EXPIRED), Turn::Expired, "it belongs to the next group");
    let first = waiters.arrive(24).expect("four are expected");
    assert!(first.has_alarm());
    let between = waiters.arrive(32).expect("four are expected");
    assert!(!between.has_alarm(), "the first has it");
    waiters.call();
    for ticket in [&late, &first, &between] {
        assert_eq!(ticket.park(Deadline::EXPIRED), Turn::Expired, "the alarm is enough");
    }
    assert!(waiters.arrive(40).is_none(), "it is the last");
    assert!(waiters.leave(&first), "others relied on its alarm");
    waiters.call();
    assert_eq!(late.park(Deadline::EXPIRED), Turn::Called, "nobody has an alarm");
}

/// Who sleeps on one word is woken when the first of them is to be, whoever came first.
#[test]
fn a_cohort_is_served_with_its_lowest_position() {
    for positions in [[8, 16], [16, 8]] {
        let waiters = Waiters::new();
        let tickets = positions.map(|position| waiters.register(position));
        waiters.release(8, Duration::ZERO);
        assert!(tickets.iter().all(|ticket| ticket.park(Deadline::EXPIRED) == Turn::Served), "{positions:?}");
    }
}

/// The time for the others to come passes, and is never longer than the wait itself.
#[test]
fn the_first_of_a_crowd_waits_for_its_time_and_not_past_its_deadline() {
    let hour = Duration::from_secs(3600);
    for (gather, timeout) in [(Duration::from_millis(1), hour), (hour, Duration::from_millis(1))] {
        let waiters = Waiters::new();
        waiters.register(8);
        waiters.release(8, gather);
        let first = waiters.arrive(16).expect("two are expected");
        assert!(first.has_alarm());
        assert_eq!(bounded(move || first.park(Deadline::from_timeout(timeout))), Turn::Expired);
    }
}

/// The alarm goes off while somebody writes for all. A thread that gave its place up then would be late for the group
/// that has its own frame, and woken after everybody else.
#[test]
fn an_alarm_during_the_write_of_its_group_keeps_its_place() {
    let waiters = Waiters::new();
    waiters.register(8);
    waiters.release(8, Duration::from_millis(1));
    let mut first = waiters.arrive(16).expect("two are expected");
    assert!(!waiters.disarm(&mut first), "nobody writes: it is this thread's turn");
    waiters.begin_group();
    assert!(waiters.disarm(&mut first) && !first.has_alarm());
    assert!(!waiters.disarm(&mut first), "once");
    // Its frame was not in the group: somebody is called, and nobody relies on the alarm.
    waiters.release(8, Duration::from_millis(1));
    waiters.call();
    assert_eq!(first.park(Deadline::EXPIRED), Turn::Called);
    // The group of the next thread leaves without its frame, and then its alarm goes off: nobody writes any more.
    assert!(waiters.leave(&first), "it was called");
    let mut second = waiters.arrive(24).expect("two are expected");
    waiters.begin_group();
    waiters.release(8, Duration::ZERO);
    assert!(!waiters.disarm(&mut second), "it is this thread's turn");
}

#[test]
fn a_wait_goes_on_in_its_place_when_its_alarm_is_for_nothing() {
    let driven = Arc::new(Driven::new(appended(), Nothing, true, false));
    let waiters = &driven.stream.waiters;
    waiters.register(START.position);
    waiters.release(START.position, Duration::from_millis(20));
    let (held, waiting) = (driven.hold(), Arc::clone(&driven));
    let wait = std::thread::spawn(move || waiting.wait_durable(END, Deadline::INFINITE, || {}));
    while waiters.waiting() == 0 {
        std::thread::yield_now();
    }
    waiters.begin_group();
    let (sender, receiver) = mpsc::channel();
    let watching = Arc::clone(&driven);
    std::thread::spawn(move || {
        while watching.stream.waiters.in_time() == 0 {
            std::thread::yield_now();
        }
        sender.send(())
    });
    assert_eq!(receiver.recv_timeout(Duration::from_secs(60)), Ok(()), "it sleeps on without its alarm");
    driven.stream.acknowledge(END, Duration::ZERO);
    drop(held);
    assert_eq!(bounded(move || wait.join().expect("no panic")), Ok(()));
}

/// Who is served sleeps until whoever wrote has nothing else to do.
#[test]
fn the_served_are_woken_by_whoever_gives_the_writer_back() {
    let waiters = Waiters::new();
    let tickets = [8, 8].map(|position| waiters.register(position));
    let sleepers = tickets.map(|ticket| std::thread::spawn(move || ticket.park(Deadline::INFINITE)));
    waiters.release(8, Duration::ZERO);
    assert_eq!(waiters.asleep(), 1, "one word for both");
    waiters.wake_served();
    assert_eq!(waiters.asleep(), 0);
    let turns = bounded(move || sleepers.map(|sleeper| sleeper.join().expect("no panic")));
    assert_eq!(turns, [Turn::Served; 2]);
}

/// Makes frames durable one by one; what else happens in a step is for the test to say.
struct OneByOne<F>(Cursor, F);

impl<F: FnMut(&Stream) -> Step> OneByOne<F> {
    fn new(during: F) -> Self {
        Self(Cursor(START), during)
    }
}

impl<F: FnMut(&Stream) -> Step> Drive for OneByOne<F> {
    fn step(&mut self, stream: &Stream) -> Step {
        let step = (self.1)(stream);
        if step == Step::Wrote {
            stream.take(&mut self.0, &mut [0; 32], 1);
            stream.acknowledge(self.0.0.position, Duration::ZERO);
        }
        step
    }
}

fn append(stream: &Stream) {
    assert!(stream.try_reserve(32, Class::Fence));
    stream.append(32, true, |_| [32, 0, 0, 0], b"");
}

/// Whoever flushes may have to write many groups; that is no reason to let those sleep who are served.
#[test]
fn the_served_are_woken_before_whoever_flushes_goes_on() {
    let (sender, receiver) = mpsc::channel();
    let mut steps = 0;
    let writer = OneByOne::new(move |_: &Stream| {
        steps += 1;
        match steps {
            1 => Step::Wrote,
            _ => {
                let woken = receiver.recv_timeout(Duration::from_secs(60));
                assert_eq!(woken, Ok(Ok(())), "served, and asleep while others are written for");
                Step::Idle
            }
        }
    });
    let driven = Arc::new(Driven::new(appended(), writer, false, true));
    let (waiting, asked) = (Arc::clone(&driven), Arc::new(AtomicU32::new(0)));
    let rings = Arc::clone(&asked);
    std::thread::spawn(move || {
        let waited = waiting.wait_durable(END, Deadline::INFINITE, || {
            rings.fetch_add(1, Ordering::Relaxed);
        });
        sender.send(waited)
    });
    while asked.load(Ordering::Relaxed) == 0 {
        std::thread::yield_now();
    }
    bounded(move || driven.write_appended());
}

/// A flush is of what was appended before. It ends, however much others append meanwhile: they write it themselves. Where
/// they may not, it goes on.
#[test]
fn a_flush_leaves_what_comes_later_to_whoever_may_write_it() {
    for (waiters_write, steps) in [(true, 2), (false, 10)] {
        let mut left = 10;
        let writer = OneByOne::new(move |stream: &Stream| {
            if left == 0 {
                return Step::Idle;
            }
            left -= 1;
            if left > 0 {
                append(stream);
            }
            Step::Wrote
        });
        let driven = Driven::new(appended(), writer, waiters_write, true);
        append(&driven.stream);
        driven.write_appended();
        assert_eq!(driven.stream.durable(), START.position + 32 * steps, "{waiters_write}");
    }
}

/// A thread finds nothing to write, or no room for it. Before it has given the writer back, the ring is filled, and
/// whoever did that waits for space: it found the writer taken, so it must be told that it is free.
#[test]
fn who_finds_the_writer_taken_looks_again_when_it_is_free() {
    [Step::Idle, Step::Full].into_iter().for_each(looks_again_after);
}

fn looks_again_after(first: Step) {
    let looks = Arc::new(AtomicU32::new(0));
    let (seen, mut is_first) = (Arc::clone(&looks), true);
    let writer = OneByOne::new(move |_: &Stream| {
        if !std::mem::take(&mut is_first) {
            return Step::Wrote;
        }
        while seen.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        first
    });
    let driven = Arc::new(Driven::new(Stream::new(START, 32), writer, true, false));
    let holding = Arc::clone(&driven);
    // The other looks whether the writer is taken by taking it, so it may be taken at first.
    let holding = std::thread::spawn(move || {
        loop {
            match holding.try_step() {
                Some(step) => break step,
                None => std::thread::yield_now(),
            }
        }
    });
    bounded(move || {
        while driven.try_hold().is_some() {
            std::thread::yield_now();
        }
        append(&driven.stream);
        let room = driven.stream.wait_for_room(Deadline::INFINITE, || {
            let has_room = driven.stream.try_reserve(32, Class::Fence)
                || (driven.try_step() == Some(Step::Wrote) && driven.stream.try_reserve(32, Class::Fence));
            looks.fetch_add(1, Ordering::Relaxed);
            has_room.then_some(())
        });
        assert_eq!(room, Some(()));
    });
    assert_eq!(holding.join().expect("no panic"), first);
}

/// Threads that come back fewer and fewer times: whoever is left writes without the others.
#[test]
fn a_crowd_that_shrinks_is_served_to_its_last_thread() {
    use crate::{Draft, Options, Store};
    let io = Arc::new(typhon_store::sim::SimIo::new(1));
    let opening = Store::open(io, std::path::Path::new("/db"), Options::small(), b"").expect("opens");
    let log = opening.start(b"").expect("starts");
    let durable = bounded(move || {
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let log = &log;
                scope.spawn(move || {
                    for _ in 0..=25 * thread {
                        log.commit(&Draft::commit(b"one of many"), Deadline::INFINITE).expect("durable");
                    }
                });
            }
        });
        let marks = log.watermarks();
        (marks.durable == marks.appended, marks.next_tsn.0 - 1)
    });
    assert_eq!(durable, (true, (0..8).map(|thread| 25 * thread + 1).sum()));
}

/// Two threads that sleep until somebody else writes, and what comes of their waits.
fn two_who_wait(
    driven: &Arc<Driven<impl Drive + Send + 'static>>,
    meanwhile: impl FnOnce(),
) -> [Result<(), NotDurable>; 2] {
    let asked = Arc::new(AtomicU32::new(0));
    let waits = [END - 8, END].map(|position| {
        let (driven, asked) = (Arc::clone(driven), Arc::clone(&asked));
        std::thread::spawn(move || {
            driven.wait_durable(position, Deadline::INFINITE, || {
                asked.fetch_add(1, Ordering::Relaxed);
            })
        })
    });
    // Before they sleep, both ask the background thread.
    while asked.load(Ordering::Relaxed) < 2 {
        std::thread::yield_now();
    }
    meanwhile();
    bounded(move || waits.map(|wait| wait.join().expect("no panic")))
}

#[test]
fn a_failure_wakes_everybody_who_waits() {
    let driven = Arc::new(Driven::new(appended(), Nothing, false, true));
    let waits = two_who_wait(&driven, || driven.stream.fail());
    assert_eq!(waits, [Err(NotDurable::Failed); 2]);
}

/// Halfway through a step.
struct Panics;

impl Drive for Panics {
    fn step(&mut self, _: &Stream) -> Step {
        panic!("planted, in the middle of a step");
    }
}

#[test]
fn a_panic_of_whoever_writes_ends_the_waits_of_the_others() {
    let driven = Arc::new(Driven::new(appended(), Panics, false, true));
    let writer = Arc::clone(&driven);
    let waits = two_who_wait(&driven, || {
        assert!(std::thread::spawn(move || writer.write_appended()).join().is_err());
    });
    assert_eq!(waits, [Err(NotDurable::Failed); 2]);
}

#[test]
fn a_failure_ends_the_waits_for_space() {
    let stream = Arc::new(appended());
    let (waiting, looks) = (Arc::clone(&stream), Arc::new(AtomicU32::new(0)));
    let seen = Arc::clone(&looks);
    let wait = std::thread::spawn(move || {
        waiting.wait_for_room(Deadline::INFINITE, || {
            seen.fetch_add(1, Ordering::Relaxed);
            waiting.failed().then_some(())
        })
    });
    while looks.load(Ordering::Relaxed) == 0 {
        std::thread::yield_now();
    }
    stream.fail();
    assert_eq!(bounded(move || wait.join().expect("no panic")), Some(()));
}

#[test]
fn what_was_durable_before_a_failure_is_acknowledged_after_it() {
    let driven = Driven::new(appended(), Nothing, true, false);
    driven.stream.acknowledge(END - 8, Duration::ZERO);
    driven.stream.fail();
    let wait = |position| driven.wait_durable(position, Deadline::EXPIRED, || {});
    assert_eq!((wait(END - 8), wait(END)), (Ok(()), Err(NotDurable::Failed)));
}

/// Nobody waits for the frame any more, and it is to be written soon all the same.
#[test]
fn a_wait_that_is_given_up_has_its_frame_written() {
    let (driven, asked) = (Driven::new(appended(), Nothing, true, true), AtomicU32::new(0));
    let result = bounded(move || {
        // Somebody else writes, for longer than the wait may take.
        let held = driven.hold();
        let waited = driven.wait_durable(END, Deadline::EXPIRED, || {
            asked.fetch_add(1, Ordering::Relaxed);
        });
        drop(held);
        (waited, asked.into_inner())
    });
    assert_eq!(result, (Err(NotDurable::Expired), 1));
}
