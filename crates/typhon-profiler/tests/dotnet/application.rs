//! A .NET application that loads a library of ours: the runtime in its own process is traced, or it pushes its collections.

use crate::process::{Home, Program, TRACE};
use crate::recording::{Recording, Row};

pub(crate) const TESTS: &[(&str, fn())] = &[
    ("g1_an_application_is_recorded_by_the_library_that_it_loads", traced),
    ("b10_an_application_pushes_its_collections_through_the_c_api", pushed),
];

const COLLECTIONS: u32 = 10;

/// Lets the application collect; gives the numbers of the collections that it counted.
fn collections(application: &mut Program) -> std::ops::RangeInclusive<u32> {
    application.tell("go");
    let said = application.says("done ");
    let counts: Vec<u32> = said.split(' ').map(|number| number.parse().unwrap()).collect();
    counts[0] + 1..=counts[1]
}

fn traced() {
    let home = Home::new();
    let mut application = home.application(&["self", &COLLECTIONS.to_string()]);
    application.says("ready");
    application.notes("tracing the collections of the .NET runtime in this process");
    let numbers = collections(&mut application);
    // It does not end the recording; that comes with the end of the process.
    application.ends_well();
    let recording = Recording::read(&home.path(TRACE));
    let spans = recording.spans();
    assert_eq!(spans.len(), COLLECTIONS as usize);
    assert!(numbers.clone().count() >= spans.len());
    for kind in [7, 8] {
        let rows = recording.of_kind(kind);
        for number in numbers.clone() {
            let row = rows.iter().find(|row| row.count() == number).unwrap();
            assert!(spans.iter().any(|(_, span)| row.is_within(span)), "{row:?}");
        }
    }
}

fn pushed() {
    let home = Home::new();
    let mut application = home.application(&["push", &COLLECTIONS.to_string()]);
    application.says("ready");
    let numbers = collections(&mut application);
    application.ends_well();
    let recording = Recording::read(&home.path(TRACE));
    let [starts, ends, suspensions] = [7, 8, 75].map(|kind| recording.of_kind(kind));
    for number in numbers.clone() {
        let once = |rows: &[&Row]| rows.iter().filter(|row| row.count() == number).count();
        assert_eq!((once(&starts), once(&ends)), (1, 1), "the reader of the socket is silent meanwhile");
    }
    let own: Vec<_> = ends.iter().filter(|end| numbers.contains(&end.count())).collect();
    assert!(own.iter().all(|end| end.heap_bytes() > 0));
    assert!(suspensions.len() >= own.len());
    let reason = |row: &&&Row| row.as_suspension().reason().map(|reason| reason.0);
    assert!(suspensions.iter().all(|row| reason(&row) == Some(1)));
}
