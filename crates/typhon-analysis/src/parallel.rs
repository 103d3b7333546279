//! Independent parts of one question, on all cores.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;

/// Works on parts on as many threads as there are cores; gives the results in the order of the parts.
///
/// `state` is made once per thread. Parts are begun in their order: the largest should come first. `done` is called on
/// the calling thread after each part.
///
/// # Errors
/// The first that `work` returned; no further part is begun then.
pub(crate) fn map_parts<P: Sync, S, R: Send, E: Send>(
    parts: &[P],
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &P) -> Result<R, E> + Sync,
    mut done: impl FnMut(&P),
) -> Result<Vec<R>, E> {
    let threads = thread::available_parallelism().map_or(1, |count| count.get()).min(parts.len());
    let next = AtomicUsize::new(0);
    let (sender, results) = channel();
    let run = |sender: std::sync::mpsc::Sender<_>| {
        let mut state = state();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(part) = parts.get(at) else { return };
            let result = work(&mut state, part);
            if result.is_err() {
                next.store(parts.len(), Ordering::Relaxed);
            }
            if sender.send((at, result)).is_err() {
                return;
            }
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                let (run, sender) = (&run, sender.clone());
                scope.spawn(move || run(sender))
            })
            .collect();
        drop(sender);
        let mut found: Vec<Option<R>> = parts.iter().map(|_| None).collect();
        let mut fault = None;
        for (at, result) in results {
            match result {
                Ok(result) => {
                    found[at] = Some(result);
                    done(&parts[at]);
                }
                Err(error) => fault = fault.or(Some(error)),
            }
        }
        for worker in workers {
            worker.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
        // Without a fault and a panic every part has its result.
        fault.map_or_else(|| Ok(found.into_iter().flatten().collect()), Err)
    })
}

#[cfg(test)]
mod tests {
    use super::map_parts;

    #[test]
    fn results_are_in_the_order_of_the_parts() {
        let parts: Vec<u64> = (0..1_000).collect();
        let mut told = 0;
        let found = map_parts(&parts, || (), |(), part| Ok::<_, ()>(part * 2), |part| told += part);
        assert_eq!(found, Ok(parts.iter().map(|part| part * 2).collect()));
        assert_eq!(told, 999 * 1_000 / 2);
        assert_eq!(map_parts(&[], || (), |(), part: &u64| Ok::<_, ()>(*part), |_| {}), Ok(vec![]));
    }

    #[test]
    fn a_fault_ends_it() {
        let parts: Vec<u64> = (0..1_000).collect();
        let work = |(): &mut (), part: &u64| if *part == 3 { Err("three") } else { Ok(()) };
        assert_eq!(map_parts(&parts, || (), work, |part| assert_ne!(*part, 3)), Err("three"));
    }

    #[test]
    #[should_panic(expected = "of a part")]
    fn a_panic_goes_on_in_the_caller() {
        let work = |(): &mut (), part: &u64| if *part == 1 { panic!("of a part") } else { Ok::<_, ()>(()) };
        let _ = map_parts(&[0, 1, 2], || (), work, |_| {});
    }
}
