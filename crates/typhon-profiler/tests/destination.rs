//! Destinations and retention (brief 02 B-31, B-33 to B-35, I-13).
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use proptest::prelude::*;
use typhon_profiler::config::{FaultCode, Overrides, Resolved, Settings, resolve};
use typhon_profiler::destination::{
    CaptureFile, Destination, Inventory, RetentionPolicy, RetentionReport, SizedFile, automatic_directory,
    capture_name, inventory, no_output, plan, prepare, prune,
};

fn resolved(overrides: Overrides) -> Resolved {
    resolve(&Settings::builder().overrides(overrides.enabled(true)).build())
}

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

// --- destinations -----------------------------------------------------------------------------------------------

#[test]
fn b33_the_table_of_destinations() {
    let database = Path::new("world.typhon");
    let automatic = |overrides: Overrides, database: Option<&Path>| {
        automatic_directory(&resolved(overrides).options, database).is_some()
    };
    let new = Overrides::new;
    assert!(automatic(new(), Some(database)));
    assert!(automatic(new().trace("  "), Some(database)));
    assert!(!automatic(new(), None), "no database, no automatic capture");
    assert!(!automatic(new().no_trace_file(), Some(database)));
    assert!(!automatic(new().trace("NONE"), Some(database)));
    assert!(!automatic(new().trace("x.typhon-trace"), Some(database)));
    assert!(!automatic(new().set("Profiler:Live", 9100), Some(database)), "a live port takes its place");
    let off = resolve(&Settings::default());
    assert!(automatic_directory(&off.options, Some(database)).is_none());
}

#[test]
fn b33_an_automatic_capture_is_named_after_its_start_below_the_database() {
    let database = tempfile::tempdir().unwrap();
    let destination = prepare(&resolved(Overrides::new()), Some(database.path()), at(951_827_696));
    let folder = database.path().join("profilings");
    assert_eq!(destination.path, Some(folder.join("20000229-123456-000.typhon-trace")));
    assert!(folder.is_dir());
    assert!(destination.retention.is_some());
    assert!(destination.faults.is_empty());
}

#[test]
fn b33_a_live_port_does_not_suppress_an_explicit_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.typhon-trace");
    let overrides = Overrides::new().trace(path.to_str().unwrap()).set("Profiler:Live", 9100);
    let destination = prepare(&resolved(overrides), None, at(0));
    assert_eq!(destination.path, Some(path));
    assert!(destination.retention.is_none());
}

fn only_fault(destination: &Destination) -> String {
    assert_eq!(destination.path, None);
    assert_eq!(destination.faults.len(), 1, "{:?}", destination.faults);
    assert_eq!(destination.faults[0].code, FaultCode::Destination);
    destination.faults[0].to_string()
}

#[test]
fn b35_a_destination_that_cannot_be_used_is_no_file_and_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let explicit = |path: &Path| {
        let path = path.to_str().unwrap();
        let settings = Settings::builder().environment([("TYPHON__PROFILER__TRACE", path)]);
        only_fault(&prepare(&resolve(&settings.build()), None, at(0)))
    };
    for path in
        [folder.path().to_owned(), folder.path().join("missing/x.typhon-trace"), file.join("x.typhon-trace")]
    {
        let line = explicit(&path);
        assert!(line.starts_with("environment TYPHON__PROFILER__TRACE: no capture file at "), "{line}");
        assert!(
            line.contains(path.to_str().unwrap()) && line.contains("; name a file in an existing directory")
        );
    }
    assert!(!folder.path().join("missing").exists(), "a misspelt folder is not created");
    let line = only_fault(&prepare(&resolved(Overrides::new()), Some(&file), at(0)));
    assert!(line.starts_with("default: Typhon:Profiler:Trace: no capture file at "), "{line}");
}

#[test]
fn b31_the_inert_warning_names_the_keys_and_when_they_are_read() {
    let line = no_output(&resolved(Overrides::new())).to_string();
    for part in [
        "Typhon:Profiler:Trace",
        "Typhon:Profiler:Live",
        "TYPHON__PROFILER__TRACE",
        "TYPHON__PROFILER__LIVE",
        "process start",
    ] {
        assert!(line.contains(part), "{line}");
    }
    assert_eq!(line.lines().count(), 1);
}

// --- retention --------------------------------------------------------------------------------------------------

/// A folder with captures of one byte per second of their start time.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new(seconds: &[u64]) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        for &second in seconds {
            folder.write(&capture_name(at(second)), second as usize);
        }
        folder
    }

    fn write(&self, name: &str, bytes: usize) {
        fs::write(self.0.path().join(name), vec![b'x'; bytes]).unwrap();
    }

    fn policy(self, text: &str) -> Self {
        fs::write(self.0.path().join("retention.json"), text).unwrap();
        self
    }

    fn prune(&self) -> (RetentionReport, Vec<String>) {
        let mut faults = Vec::new();
        let report = prune(self.0.path(), &mut faults);
        (report, faults.iter().map(ToString::to_string).collect())
    }

    /// Start times of the captures left.
    fn left(&self) -> Vec<u64> {
        let seconds = |capture: &CaptureFile| capture.time.duration_since(UNIX_EPOCH).unwrap().as_secs();
        inventory(self.0.path()).unwrap().captures.iter().map(seconds).collect()
    }

    fn has(&self, name: &str) -> bool {
        self.0.path().join(name).exists()
    }
}

fn name(second: u64) -> String {
    capture_name(at(second))
}

#[test]
fn b34_the_oldest_go_until_the_budget_holds() {
    let folder = Folder::new(&[10, 20, 30, 40]).policy(r#"{"budgetBytes": 75, "keepLatest": 1}"#);
    let (report, faults) = folder.prune();
    assert_eq!(folder.left(), [30, 40]);
    assert_eq!(report.evicted, [name(10), name(20)]);
    assert_eq!((report.capture_bytes, report.budget_bytes), (70, 75));
    assert_eq!(faults, [""; 0]);
    assert_eq!(folder.prune().0.evicted, [""; 0], "nothing more to do");
}

#[test]
fn b34_nothing_goes_within_the_budget_or_without_one() {
    for policy in [
        r#"{"budgetBytes": 60, "keepLatest": 0}"#,
        r#"{"budgetBytes": 0, "keepLatest": 0}"#,
        r#"{"budgetBytes": -1, "keepLatest": 0}"#,
        r#"{"keepLatest": 0}"#,
    ] {
        let folder = Folder::new(&[10, 20, 30]).policy(policy);
        folder.prune();
        assert_eq!(folder.left(), [10, 20, 30], "{policy}");
    }
}

#[test]
fn b34_the_newest_and_the_pinned_stay_whatever_they_take() {
    let pinned = name(20);
    let policy =
        format!(r#"{{"budgetBytes": 1, "keepLatest": 2, "pinned": ["{pinned}", "gone.typhon-trace"]}}"#);
    let folder = Folder::new(&[10, 20, 30, 40, 50]).policy(&policy);
    let (report, faults) = folder.prune();
    assert_eq!(folder.left(), [20, 40, 50]);
    assert_eq!(report.pinned_bytes, 20);
    assert_eq!(faults.len(), 1, "pinned captures exceed the budget: {faults:?}");
    assert!(faults[0].contains("pinned captures take 20 bytes, the budget is 1"));
}

#[test]
fn b34_pinned_captures_count_among_the_newest() {
    let policy = format!(r#"{{"budgetBytes": 1, "keepLatest": 2, "pinned": ["{}"]}}"#, name(40));
    let folder = Folder::new(&[10, 20, 30, 40]).policy(&policy);
    folder.prune();
    assert_eq!(folder.left(), [30, 40]);
}

#[test]
fn b34_the_default_keeps_the_ten_newest() {
    let seconds: Vec<u64> = (1..=12).collect();
    let captures = seconds.iter().map(|&second| CaptureFile {
        file: SizedFile { name: name(second), bytes: 10 << 30 },
        time: at(second),
        sidecars: Vec::new(),
    });
    let inventory = Inventory { captures: captures.collect(), orphans: Vec::new() };
    let plan = plan(&inventory, &RetentionPolicy::default());
    assert_eq!(plan.candidates, [0, 1]);
    assert_eq!(plan.excess_bytes, 100 << 30);
}

#[test]
fn b34_a_name_without_a_time_is_as_old_as_its_last_write() {
    let folder = Folder::new(&[10, 30]).policy(r#"{"budgetBytes": 1, "keepLatest": 1}"#);
    folder.write("mine.typhon-trace", 5);
    let mine = File::options().write(true).open(folder.0.path().join("mine.typhon-trace")).unwrap();
    mine.set_modified(at(20)).unwrap();
    drop(mine);
    let (report, _) = folder.prune();
    assert_eq!(report.evicted, [name(10), "mine.typhon-trace".to_owned()]);
    assert_eq!(folder.left(), [30]);
}

#[test]
fn i13_a_capture_in_use_is_skipped_and_the_next_one_goes() {
    let folder = Folder::new(&[10, 20, 30]).policy(r#"{"budgetBytes": 30, "keepLatest": 0}"#);
    let reader = File::open(folder.0.path().join(name(10))).unwrap();
    reader.lock_shared().unwrap();
    let (report, faults) = folder.prune();
    assert_eq!(report.skipped, [name(10)]);
    assert_eq!(report.evicted, [name(20), name(30)]);
    assert_eq!(folder.left(), [10]);
    assert_eq!(faults, [""; 0]);
    drop(reader);
    assert_eq!(folder.prune().0.evicted, [""; 0], "within the budget again");
}

#[test]
fn b34_sidecars_go_with_their_capture_and_orphans_always() {
    let stem = |second: u64| name(second).replace(".typhon-trace", "");
    let sidecars = |second: u64| {
        let capture = name(second);
        [
            format!("{capture}-cache"),
            format!("{capture}.sites"),
            format!("{capture}.typhon-index"),
            format!("{}.typhon-index", stem(second)),
        ]
    };
    let folder = Folder::new(&[10, 20]).policy(r#"{"budgetBytes": 20, "keepLatest": 0}"#);
    for second in [10, 20, 99] {
        sidecars(second).iter().for_each(|name| folder.write(name, 7));
    }
    folder.write("notes.txt", 3);
    folder.write("sites", 3);
    let (report, faults) = folder.prune();
    assert_eq!(faults, [""; 0]);
    assert_eq!(folder.left(), [20]);
    assert_eq!(report.sidecar_bytes, 28, "outside the budget");
    assert!(sidecars(10).iter().chain(&sidecars(99)).all(|name| !folder.has(name)));
    assert!(sidecars(20).iter().all(|name| folder.has(name)));
    assert!(folder.has("notes.txt") && folder.has("sites") && folder.has("retention.json"));
}

#[cfg(unix)]
#[test]
fn b34_links_and_folders_are_left_alone() {
    let outside = Folder::new(&[10]);
    let folder = Folder::new(&[20]).policy(r#"{"budgetBytes": 1, "keepLatest": 0}"#);
    std::os::unix::fs::symlink(outside.0.path().join(name(10)), folder.0.path().join(name(5))).unwrap();
    fs::create_dir(folder.0.path().join(name(6))).unwrap();
    folder.prune();
    assert!(outside.has(&name(10)) && folder.has(&name(6)));
    assert!(folder.0.path().join(name(5)).is_symlink());
    assert_eq!(folder.left(), [0u64; 0]);
}

#[test]
fn b34_a_folder_that_cannot_be_listed_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let mut faults = Vec::new();
    let report = prune(&folder.path().join("missing"), &mut faults);
    assert_eq!(report.capture_bytes, 0);
    assert_eq!(faults.len(), 1);
}

fn some_inventory() -> impl Strategy<Value = (Inventory, RetentionPolicy)> {
    let captures = proptest::collection::vec((0u64..1_000, any::<bool>()), 0..20);
    (captures, -10i64..5_000, 0usize..8).prop_map(|(captures, budget_bytes, keep_latest)| {
        let file = |second: usize, bytes: u64| SizedFile { name: name(second as u64), bytes };
        let pinned = captures.iter().enumerate().filter(|(_, (_, pinned))| *pinned);
        let pinned: BTreeSet<String> = pinned.map(|(second, _)| name(second as u64)).collect();
        let captures = captures.iter().enumerate().map(|(second, (bytes, _))| CaptureFile {
            file: file(second, *bytes),
            time: at(second as u64),
            sidecars: Vec::new(),
        });
        let inventory = Inventory { captures: captures.collect(), orphans: Vec::new() };
        (inventory, RetentionPolicy { budget_bytes, keep_latest, pinned })
    })
}

proptest! {
    #[test]
    fn b34_a_plan_never_touches_what_must_stay((inventory, policy) in some_inventory()) {
        let plan = plan(&inventory, &policy);
        let total: u64 = inventory.captures.iter().map(|capture| capture.file.bytes).sum();
        if policy.budget_bytes <= 0 || total <= policy.budget_bytes as u64 {
            prop_assert_eq!(&plan, &Default::default());
        } else {
            prop_assert_eq!(plan.excess_bytes, total - policy.budget_bytes as u64);
            // Everything old enough and not pinned is a candidate, so the budget holds if it can hold.
            let kept = |index: &usize| {
                *index + policy.keep_latest >= inventory.captures.len()
                    || policy.pinned.contains(&inventory.captures[*index].file.name)
            };
            let expected: Vec<usize> = (0..inventory.captures.len()).filter(|index| !kept(index)).collect();
            prop_assert_eq!(plan.candidates, expected);
        }
    }
}
