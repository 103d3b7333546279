//! Queues driven by hand, as the scheduler drives them.

use super::*;
use crate::{QueueId, SystemIndex};
use proptest::prelude::*;
use std::cell::RefCell;
use std::sync::Arc;

const A: SystemIndex = SystemIndex::new(4);
const B: SystemIndex = SystemIndex::new(2);
const READER: SystemIndex = SystemIndex::new(7);
const OTHER: SystemIndex = SystemIndex::new(8);
const STRANGER: SystemIndex = SystemIndex::new(9);

/// The context of a running chunk.
struct Ctx<'a> {
    outboxes: &'a RefCell<Outboxes>,
    system: SystemIndex,
}

impl UsesQueues for Ctx<'_> {
    fn queue_scope(&self) -> QueueScope<'_> {
        QueueScope { outboxes: self.outboxes, system: self.system }
    }
}

/// One worker.
struct Worker(RefCell<Outboxes>);

impl Worker {
    fn of<T: Send + Sync + 'static>(queue: &Queue<T>) -> Self {
        Self(RefCell::new(Outboxes::new(&[queue.erased()])))
    }

    fn ctx(&self, system: SystemIndex) -> Ctx<'_> {
        Ctx { outboxes: &self.0, system }
    }

    /// Runs one chunk of a producer.
    fn chunk<R>(
        &self,
        system: SystemIndex,
        chunk: u32,
        succeeds: bool,
        run: impl FnOnce(&Ctx<'_>) -> R,
    ) -> R {
        let queues = [QueueId::new(0)];
        self.0.borrow_mut().begin_chunk(&queues, system, chunk);
        let result = run(&self.ctx(system));
        self.0.borrow_mut().end_chunk(&queues, succeeds);
        result
    }
}

/// A queue into which `A` and then `B` push, whatever their numbers say, and its one worker.
fn queue_with<T: Send + Sync + 'static>(options: QueueOptions, roles: Roles) -> (Queue<T>, Worker) {
    let queue = Queue::new(QueueId::new(0), "Fights", options);
    queue.erased().bind(roles).unwrap();
    let worker = Worker::of(&queue);
    (queue, worker)
}

fn roles(readers: &[SystemIndex], drainers: &[SystemIndex]) -> Roles {
    let producers =
        vec![Producer { system: A, topological_index: 0 }, Producer { system: B, topological_index: 1 }];
    Roles { producers, readers: readers.to_vec(), drainers: drainers.to_vec() }
}

fn begin(queue: &Queue<u32>) {
    queue.erased().begin_tick();
}

/// `A` pushes the events in one chunk, `B` nothing; both succeed.
fn produce(queue: &Queue<u32>, worker: &Worker, events: impl IntoIterator<Item = u32>) {
    worker.chunk(A, 0, true, |ctx| events.into_iter().for_each(|event| queue.push(ctx, event).unwrap()));
    queue.erased().producer_done(A, true);
    queue.erased().producer_done(B, true);
}

/// What a reader sees in a run that ends well.
fn read(queue: &Queue<u32>, worker: &Worker, system: SystemIndex) -> Vec<u32> {
    let seen = queue.read(&worker.ctx(system)).unwrap().to_vec();
    queue.erased().reader_done(system, true);
    seen
}

fn counters(queue: &Queue<u32>) -> QueueCounters {
    queue.erased().counters()
}

#[test]
fn b45_events_come_by_producer_then_chunk_then_push() {
    let (queue, worker) = queue_with(16.into(), roles(&[READER], &[]));
    let other = Worker::of(&queue);
    begin(&queue);
    let push_two = |worker: &Worker, system, chunk, first| {
        worker.chunk(system, chunk, true, |ctx| {
            queue.push(ctx, first).unwrap();
            queue.push(ctx, first + 1).unwrap();
        });
    };
    push_two(&other, B, 0, 30);
    push_two(&worker, A, 1, 20);
    push_two(&other, A, 0, 10);
    queue.erased().producer_done(B, true);
    assert!(queue.erased().is_empty_for(READER), "not before the last producer has completed");
    queue.erased().producer_done(A, true);
    assert_eq!(read(&queue, &worker, READER), [10, 11, 20, 21, 30, 31]);
}

#[test]
fn b45_events_of_a_failed_system_are_discarded() {
    let (queue, worker) = queue_with(16.into(), roles(&[READER], &[]));
    begin(&queue);
    worker.chunk(A, 0, true, |ctx| queue.push(ctx, 1).unwrap());
    worker.chunk(A, 1, false, |ctx| queue.push(ctx, 2).unwrap());
    worker.chunk(B, 0, true, |ctx| queue.push(ctx, 3).unwrap());
    queue.erased().producer_done(A, false);
    queue.erased().producer_done(B, true);
    assert_eq!(read(&queue, &worker, READER), [3]);
    assert_eq!(counters(&queue).overflow, 0, "discarded events found room");
    begin(&queue);
    produce(&queue, &worker, [4]);
    assert_eq!(read(&queue, &worker, READER), [4], "a failure counts for its own tick");
}

#[test]
fn b45_capacity_applies_in_merged_order() {
    let (queue, worker) = queue_with(4.into(), roles(&[READER], &[]));
    begin(&queue);
    worker.chunk(B, 0, true, |ctx| (20..23).for_each(|event| queue.push(ctx, event).unwrap()));
    worker.chunk(A, 0, true, |ctx| (10..13).for_each(|event| queue.push(ctx, event).unwrap()));
    queue.erased().producer_done(B, true);
    queue.erased().producer_done(A, true);
    assert_eq!(read(&queue, &worker, READER), [10, 11, 12, 20]);
    assert_eq!((counters(&queue).produced, counters(&queue).overflow), (4, 2));
}

#[test]
fn b45_a_queue_is_empty_when_a_tick_starts() {
    let (queue, worker) = queue_with(4.into(), roles(&[READER], &[]));
    begin(&queue);
    produce(&queue, &worker, [1, 2]);
    assert_eq!(counters(&queue).end_depth, 2, "nobody has read them");
    begin(&queue);
    assert!(queue.erased().is_empty_for(READER));
    produce(&queue, &worker, [3]);
    assert_eq!(read(&queue, &worker, READER), [3]);
}

#[test]
fn b45_carried_over_events_leave_when_all_readers_passed_them() {
    let (queue, worker) = queue_with(QueueOptions::from(4).carry_over(), roles(&[READER, OTHER], &[]));
    begin(&queue);
    produce(&queue, &worker, [1, 2]);
    assert_eq!(read(&queue, &worker, READER), [1, 2]);
    begin(&queue);
    produce(&queue, &worker, [3, 4, 5]);
    let expected = QueueCounters { produced: 2, consumed: 0, peak_depth: 4, overflow: 1, end_depth: 4 };
    assert_eq!(counters(&queue), expected, "the slower reader has passed nothing");
    assert_eq!(read(&queue, &worker, OTHER), [1, 2, 3, 4]);
    assert_eq!((counters(&queue).consumed, counters(&queue).end_depth), (2, 2));
    assert_eq!(read(&queue, &worker, READER), [3, 4], "each reader has its own place");
    begin(&queue);
    assert!(queue.erased().is_empty_for(READER) && queue.erased().is_empty_for(OTHER));
}

#[test]
fn b45_a_reader_before_its_producer_sees_the_previous_tick() {
    let (queue, worker) = queue_with(QueueOptions::from(4).carry_over(), roles(&[READER], &[]));
    for tick in 0..5 {
        begin(&queue);
        let seen = read(&queue, &worker, READER);
        assert_eq!(seen, if tick == 0 { vec![] } else { vec![tick - 1] });
        produce(&queue, &worker, [tick]);
    }
}

#[test]
fn b45_a_failed_reader_has_passed_nothing() {
    let (queue, worker) = queue_with(QueueOptions::from(4).carry_over(), roles(&[READER], &[]));
    begin(&queue);
    produce(&queue, &worker, [1]);
    assert_eq!(*queue.read(&worker.ctx(READER)).unwrap(), [1]);
    queue.erased().reader_done(READER, false);
    assert_eq!(counters(&queue).consumed, 0);
    begin(&queue);
    assert_eq!(read(&queue, &worker, READER), [1]);
}

#[test]
fn b45_a_reader_that_does_not_look_passes_nothing() {
    let (queue, worker) = queue_with(QueueOptions::from(4).carry_over(), roles(&[READER], &[]));
    begin(&queue);
    produce(&queue, &worker, [1]);
    queue.erased().reader_done(READER, true);
    assert!(!queue.erased().is_empty_for(READER));
}

#[test]
fn b45_all_chunks_of_a_reader_see_the_same_events() {
    let (queue, worker) = queue_with(8.into(), roles(&[READER], &[]));
    let other = Worker::of(&queue);
    begin(&queue);
    produce(&queue, &worker, [1, 2, 3]);
    let (first_ctx, second_ctx) = (worker.ctx(READER), other.ctx(READER));
    let (first, second) = (queue.read(&first_ctx).unwrap(), queue.read(&second_ctx).unwrap());
    assert_eq!(first.to_vec(), second.to_vec());
}

#[test]
fn b45_draining_takes_everything_out_in_order() {
    let (queue, worker) = queue_with(8.into(), roles(&[READER], &[OTHER]));
    begin(&queue);
    produce(&queue, &worker, [1, 2, 3]);
    assert_eq!(*queue.read(&worker.ctx(OTHER)).unwrap(), [1, 2, 3], "a drainer may look first");
    let ctx = worker.ctx(OTHER);
    let mut drained = queue.drain(&ctx).unwrap();
    assert_eq!((drained.len(), drained.next()), (3, Some(1)));
    drop(drained);
    queue.erased().reader_done(OTHER, true);
    assert!(queue.erased().is_empty_for(READER), "what was not taken one by one is gone too");
    assert_eq!((counters(&queue).consumed, counters(&queue).end_depth), (3, 0));
}

#[test]
fn b45_drained_memory_goes_back_to_the_queue() {
    let (queue, worker) = queue_with(8.into(), roles(&[], &[OTHER]));
    let capacity = |queue: &Queue<u32>| queue.shared().store().capacity();
    for _ in 0..3 {
        begin(&queue);
        produce(&queue, &worker, [1, 2]);
        let before = capacity(&queue);
        assert_eq!(queue.drain(&worker.ctx(OTHER)).unwrap().collect::<Vec<_>>(), [1, 2]);
        assert_eq!(capacity(&queue), before);
    }
}

#[test]
fn b46_push_fails_once_one_chunk_alone_has_filled_the_queue() {
    let (queue, worker) = queue_with(2.into(), roles(&[READER], &[]));
    begin(&queue);
    let result = worker.chunk(A, 0, true, |ctx| {
        queue.push(ctx, 1).unwrap();
        queue.push(ctx, 2).unwrap();
        queue.push(ctx, 3)
    });
    assert_eq!(result, Err(QueueError::Full { queue: "Fights".to_owned(), capacity: 2 }));
    queue.erased().producer_done(A, true);
    queue.erased().producer_done(B, true);
    assert_eq!(read(&queue, &worker, READER), [1, 2]);
    assert_eq!(counters(&queue).overflow, 1);
}

#[test]
fn b46_drop_newest_counts_and_does_not_fail() {
    let options = QueueOptions::from(2).full(FullPolicy::DropNewest);
    let (queue, worker) = queue_with(options, roles(&[READER], &[]));
    begin(&queue);
    produce(&queue, &worker, 0..5);
    assert_eq!(read(&queue, &worker, READER), [0, 1]);
    assert_eq!((counters(&queue).produced, counters(&queue).overflow), (2, 3));
}

#[test]
fn b46_grow_holds_up_to_its_limit() {
    let options = QueueOptions::from(2).full(FullPolicy::Grow(8));
    let (queue, worker) = queue_with(options, roles(&[READER], &[]));
    begin(&queue);
    let refused =
        worker.chunk(A, 0, true, |ctx| (0..9).filter(|&event| queue.push(ctx, event).is_err()).count());
    queue.erased().producer_done(A, true);
    queue.erased().producer_done(B, true);
    assert_eq!((refused, read(&queue, &worker, READER).len()), (1, 8));
}

#[test]
fn b46_counters_become_the_record_of_the_tick() {
    let counters = QueueCounters { produced: 5, consumed: 4, peak_depth: 3, overflow: 2, end_depth: 1 };
    let event = counters.event(9, QueueId::new(6));
    assert_eq!((event.tick, event.queue_id, event.produced, event.consumed), (9, 6, 5, 4));
    assert_eq!((event.peak_depth, event.overflow_count, event.end_of_tick_depth), (3, 2, 1));
}

#[test]
fn b46_faulty_options_are_named_with_a_fix() {
    assert!(QueueOptions::default().faults().is_empty());
    assert_eq!(
        QueueOptions::from(1000).full(FullPolicy::Grow(512)).faults(),
        [
            "capacity of 1000 events is not a power of two; use 1024",
            "limit of 512 events is below the capacity of 1000",
        ]
    );
    assert_eq!(QueueOptions::from(0).faults(), ["capacity of 0 events is not a power of two; use 1"]);
}

#[test]
fn b47_use_without_declaration_is_an_error() {
    let (queue, worker) = queue_with::<u32>(8.into(), roles(&[READER], &[OTHER]));
    begin(&queue);
    let name = || "Fights".to_owned();
    let not_a_producer = QueueError::NotAProducer { queue: name(), system: STRANGER };
    assert_eq!(queue.push(&worker.ctx(STRANGER), 1), Err(not_a_producer));
    let not_a_reader = QueueError::NotAReader { queue: name(), system: STRANGER };
    assert_eq!(queue.read(&worker.ctx(STRANGER)).unwrap_err(), not_a_reader);
    let not_a_drainer = QueueError::NotADrainer { queue: name(), system: READER };
    assert_eq!(queue.drain(&worker.ctx(READER)).unwrap_err(), not_a_drainer);
}

#[test]
fn b47_a_queue_of_another_runtime_is_refused() {
    let (queue, worker) = queue_with::<u32>(8.into(), roles(&[READER], &[]));
    let (foreign, _) = queue_with::<u32>(8.into(), roles(&[READER], &[]));
    begin(&queue);
    let refusal = QueueError::OfAnotherRuntime { queue: "Fights".to_owned() };
    let pushed = worker.chunk(A, 0, true, |ctx| foreign.push(ctx, 1));
    assert_eq!(pushed, Err(refusal.clone()));
    assert_eq!(foreign.read(&worker.ctx(READER)).unwrap_err(), refusal);
    assert_eq!(queue.erased().bind(Roles::default()), Err(BindError), "nor can two schedules share one");
}

#[test]
fn b47_draining_what_is_being_read_is_an_error_not_a_deadlock() {
    let (queue, worker) = queue_with(8.into(), roles(&[], &[OTHER]));
    begin(&queue);
    produce(&queue, &worker, [1]);
    let ctx = worker.ctx(OTHER);
    let events = queue.read(&ctx).unwrap();
    assert_eq!(queue.drain(&ctx).unwrap_err(), QueueError::InUse { queue: "Fights".to_owned() });
    assert_eq!(*events, [1]);
}

/// An event whose destructor can panic, with a payload whose destructor panics too.
struct Bomb(bool);

struct Fragment;

impl Drop for Bomb {
    fn drop(&mut self) {
        if self.0 {
            std::panic::resume_unwind(Box::new(Fragment));
        }
    }
}

impl Drop for Fragment {
    fn drop(&mut self) {
        std::panic::resume_unwind(Box::new("planted"));
    }
}

fn push_bombs(queue: &Queue<Bomb>, worker: &Worker, system: SystemIndex, count: u32) {
    worker.chunk(system, 0, true, |ctx| (0..count).for_each(|_| queue.push(ctx, Bomb(true)).unwrap()));
}

fn merge(queue: &Queue<Bomb>) {
    queue.erased().producer_done(A, true);
    queue.erased().producer_done(B, true);
}

#[test]
fn b43_a_panic_in_an_events_destructor_stays_in_the_queue() {
    let (queue, worker) = queue_with(2.into(), roles(&[READER], &[]));
    queue.erased().begin_tick();
    // Two stay in the queue, one does not find room at the merge.
    push_bombs(&queue, &worker, A, 2);
    push_bombs(&queue, &worker, B, 1);
    merge(&queue);
    assert_eq!(queue.erased().counters().overflow, 1);
    queue.erased().begin_tick();
    worker.chunk(A, 0, true, |ctx| queue.push(ctx, Bomb(false)).unwrap());
    merge(&queue);
    assert_eq!(queue.read(&worker.ctx(READER)).unwrap().len(), 1);
}

#[test]
fn b43_a_panic_in_an_events_destructor_goes_nowhere_wherever_the_event_ends() {
    // Left over by who drains.
    let (queue, worker) = queue_with(4.into(), roles(&[], &[READER]));
    queue.erased().begin_tick();
    push_bombs(&queue, &worker, A, 3);
    merge(&queue);
    drop(queue.drain(&worker.ctx(READER)).unwrap());
    // Of a chunk that failed, and of one that was never ended.
    worker.chunk(A, 0, false, |ctx| (0..2).for_each(|_| queue.push(ctx, Bomb(true)).unwrap()));
    worker.0.borrow_mut().begin_chunk(&[QueueId::new(0)], A, 0);
    (0..2).for_each(|_| queue.push(&worker.ctx(A), Bomb(true)).unwrap());
    // At the end of the worker, of the batches that were not merged, and of the queue.
    let other = Worker::of(&queue);
    push_bombs(&queue, &other, B, 2);
    drop((worker, other, queue));
    let (queue, worker) = queue_with(4.into(), roles(&[READER], &[]));
    queue.erased().begin_tick();
    push_bombs(&queue, &worker, A, 3);
    merge(&queue);
    drop((worker, queue));
}

#[test]
fn trap13_b38_parallel_producers_lose_and_invent_nothing() {
    const WORKERS: u32 = 4;
    const CHUNKS: u32 = 64;
    let (queue, reader) = queue_with(4096.into(), roles(&[READER], &[]));
    for tick in 0..50 {
        begin(&queue);
        let next = std::sync::atomic::AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..WORKERS {
                scope.spawn(|| {
                    let worker = Worker::of(&queue);
                    loop {
                        let chunk = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        if chunk >= CHUNKS {
                            break;
                        }
                        worker.chunk(A, chunk, true, |ctx| {
                            (0..10).for_each(|n| queue.push(ctx, tick * 1000 + chunk * 10 + n).unwrap());
                        });
                    }
                });
            }
        });
        queue.erased().producer_done(A, true);
        queue.erased().producer_done(B, true);
        assert_eq!(
            read(&queue, &reader, READER),
            (0..CHUNKS * 10).map(|n| tick * 1000 + n).collect::<Vec<_>>()
        );
    }
}

/// One tick of the comparison with the model below: events per producer and chunk, who fails, who reads.
#[derive(Debug, Clone)]
struct TickPlan {
    chunks: [Vec<u8>; 2],
    fails: [bool; 2],
    /// Order in which the chunks run, as random keys.
    order: u64,
    reads: [bool; 2],
}

fn tick_plan() -> impl Strategy<Value = TickPlan> {
    let chunks = || prop::collection::vec(0..6u8, 0..4);
    let fails = [prop::bool::weighted(0.2), prop::bool::weighted(0.2)];
    ([chunks(), chunks()], fails, any::<u64>(), any::<[bool; 2]>())
        .prop_map(|(chunks, fails, order, reads)| TickPlan { chunks, fails, order, reads })
}

proptest! {
    /// The queue against lists that are merged, cut and counted in the plainest way.
    #[test]
    fn b45_behaves_like_a_plain_list(plans in prop::collection::vec(tick_plan(), 1..20), carry_over: bool) {
        let options = QueueOptions { carry_over, ..8.into() };
        let (queue, first) = queue_with(options, roles(&[READER, OTHER], &[]));
        let workers = [first, Worker::of(&queue), Worker::of(&queue)];
        let mut events: Vec<u32> = Vec::new();
        let mut places = [0usize; 2];
        let mut serial = 0;
        for plan in plans {
            begin(&queue);
            let gone = if carry_over { places[0].min(places[1]) } else { events.len() };
            events.drain(..gone);
            places = places.map(|place| place.saturating_sub(gone));
            if !carry_over {
                places = [0; 2];
            }
            let (mut overflow, depth_at_start) = (0, events.len());
            let mut pushed = Vec::new();
            for (producer, sizes) in plan.chunks.iter().enumerate() {
                for (chunk, &size) in sizes.iter().enumerate() {
                    let batch: Vec<u32> = (serial..serial + u32::from(size)).collect();
                    serial += u32::from(size);
                    pushed.push((producer, chunk as u32, batch));
                }
            }
            let kept = pushed.iter().filter(|(producer, ..)| !plan.fails[*producer]);
            for event in kept.flat_map(|(.., batch)| batch) {
                if events.len() < 8 { events.push(*event) } else { overflow += 1 }
            }
            pushed.sort_by_key(|(producer, chunk, _)| plan.order.rotate_left(*chunk * 7 + *producer as u32 * 29));
            for (n, (producer, chunk, batch)) in pushed.iter().enumerate() {
                workers[n % 3].chunk([A, B][*producer], *chunk, true, |ctx| {
                    batch.iter().for_each(|&event| queue.push(ctx, event).unwrap());
                });
            }
            queue.erased().producer_done(B, !plan.fails[1]);
            queue.erased().producer_done(A, !plan.fails[0]);
            for (reader, system) in [READER, OTHER].into_iter().enumerate() {
                prop_assert_eq!(queue.erased().is_empty_for(system), places[reader] == events.len());
                if plan.reads[reader] {
                    prop_assert_eq!(read(&queue, &workers[reader], system), &events[places[reader]..]);
                    places[reader] = events.len();
                }
            }
            let counted = counters(&queue);
            prop_assert_eq!(counted.overflow, overflow);
            prop_assert_eq!(counted.end_depth as usize, events.len() - places[0].min(places[1]));
            prop_assert_eq!(
                depth_at_start as u32 + counted.produced - counted.consumed,
                counted.end_depth
            );
        }
    }
}

#[test]
fn handles_are_shared_between_threads() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Queue<u32>>();
    is_shared::<Arc<dyn ErasedQueue>>();
    fn is_moved<T: Send>() {}
    is_moved::<Outboxes>();
}
