//! Programs and files that tell, lie, hang, and belong to others.

use super::*;
use std::fs::{self, File};

const PATIENCE: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(300);

impl Source {
    /// What it tells, whenever that was.
    fn reading(&mut self) -> Result<Option<Reading>, String> {
        Ok(self.ask()?.map(|(reading, _)| reading))
    }
}

fn shell(script: &str) -> Kind {
    Kind::Command(["/bin/sh", "-c", script].map(String::from).to_vec())
}

#[test]
fn a_command_tells_what_it_prints() {
    let mut source = Source::new(shell("echo 'ups.status: OL'"), PATIENCE);
    assert_eq!(source.reading(), parse("ups.status: OL").map(Some));
}

#[test]
fn a_command_that_fails_prints_too_much_or_is_not_there_tells_nothing() {
    let refused = [
        (shell("echo 'ups.status: OL'; exit 3"), "exit status: 3"),
        (shell("yes 'ups.status: OL'"), "too long"),
        (shell("kill -9 $$"), "signal: 9"),
        (shell("echo No driver >&2; exit 1"), "exit status: 1: No driver"),
        (shell("yes complaint >&2"), "timed out: compl"),
        (shell("printf '\\377'"), "does not say ups.status"),
        (shell("echo"), "does not say ups.status"),
        (Kind::Command(vec!["/nowhere/upsc".into()]), "No such file"),
        (Kind::Command(vec![]), "no name"),
    ];
    for (kind, why) in refused {
        let patience = if why.starts_with("timed out") { SHORT } else { PATIENCE };
        let refusal = Source::new(kind.clone(), patience).reading().unwrap_err();
        assert!(refusal.contains(why), "{kind:?}: {refusal}");
    }
}

#[test]
fn a_command_that_does_not_end_is_ended_with_all_that_it_has_started() {
    let directory = tempfile::tempdir().unwrap();
    let noted = directory.path().join("pids");
    let script = format!("sleep 1000 & echo $! > {0}; echo $$ >> {0}; wait", noted.display());
    let refusal = Source::new(shell(&script), Duration::from_secs(2)).reading().unwrap_err();
    assert!(refusal.contains("timed out"), "{refusal}");
    let pids = fs::read_to_string(&noted).unwrap();
    assert_eq!(pids.lines().count(), 2, "{pids}");
    pids.lines().for_each(wait_for_end);
}

#[test]
fn who_is_left_behind_by_a_command_is_ended_and_holds_nothing_up() {
    let directory = tempfile::tempdir().unwrap();
    let noted = directory.path().join("pid");
    let script = format!("sleep 1000 & echo $! > {}; echo 'ups.status: OB'", noted.display());
    let reading = Source::new(shell(&script), PATIENCE).reading();
    assert_eq!(reading, parse("ups.status: OB").map(Some));
    wait_for_end(fs::read_to_string(&noted).unwrap().trim());
}

fn wait_for_end(pid: &str) {
    let is_there = || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    while is_there() {
        thread::sleep(LOOK_EVERY);
    }
}

#[test]
fn a_file_tells_something_only_when_it_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("reading");
    let mut source = Source::new(Kind::File(path.clone()), PATIENCE);
    assert!(source.reading().unwrap_err().contains("No such file"));
    fs::write(&path, "ups.status: OL\n").unwrap();
    assert_eq!(source.reading(), Ok(None), "nobody knows how old it is");
    assert_eq!(source.reading(), Ok(None));
    let written = |text: &str| {
        let next = directory.path().join("next");
        fs::write(&next, text).unwrap();
        fs::rename(&next, &path).unwrap();
    };
    written("ups.status: OB\n");
    assert_eq!(source.reading(), parse("ups.status: OB").map(Some));
    assert_eq!(source.reading(), Ok(None));
    written("ups.status: what?\n");
    assert!(source.reading().is_err());
    fs::remove_file(&path).unwrap();
    assert!(source.reading().is_err());
    written("ups.status: OL\n");
    assert_eq!(source.reading(), Ok(None), "one that comes back may be an old one");
}

#[test]
fn what_is_in_a_file_may_be_as_old_as_the_look_before() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("reading");
    fs::write(&path, "ups.status: OL\n").unwrap();
    let mut source = Source::new(Kind::File(path.clone()), PATIENCE);
    for number in 0..20 {
        let before_ms = now_ms();
        source.ask().unwrap();
        thread::sleep(Duration::from_millis(2));
        let written_ms = now_ms();
        fs::write(&path, format!("ups.status: OL\nnumber: {number}\n")).unwrap();
        thread::sleep(Duration::from_millis(2));
        let (_, told_ms) = source.ask().unwrap().expect("it was written");
        assert!((before_ms..written_ms).contains(&told_ms), "{before_ms} {told_ms} {written_ms}");
    }
}

#[test]
fn bytes_that_are_no_text_are_left_out_with_the_variable_that_has_them() {
    let text = b"device.mfr: M\xfcller\nups.status: OL\n";
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("reading");
    fs::write(&path, "\n").unwrap();
    let mut source = Source::new(Kind::File(path.clone()), PATIENCE);
    source.ask().unwrap();
    fs::write(&path, text).unwrap();
    assert_eq!(source.reading(), parse("ups.status: OL").map(Some));
    let printed = Source::new(shell(&format!("cat {}", path.display())), PATIENCE).reading();
    assert_eq!(printed, parse("ups.status: OL").map(Some));
}

#[test]
fn a_file_that_has_been_set_back_in_time_was_written_all_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("reading");
    fs::write(&path, "ups.status: OL\n").unwrap();
    let mut source = Source::new(Kind::File(path.clone()), PATIENCE);
    assert_eq!(source.reading(), Ok(None));
    let file = File::options().write(true).open(&path).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(source.reading(), parse("ups.status: OL").map(Some));
}

#[test]
fn what_is_no_file_is_not_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let mut source = Source::new(Kind::File(pipe), PATIENCE);
    let asked: Vec<_> = (0..3).map(|_| source.reading()).collect();
    assert!(asked.iter().all(|it| !matches!(it, Ok(Some(_)))), "{asked:?}");
}

#[test]
fn who_leaves_somebody_behind_each_time_leaves_no_thread_behind() {
    let threads = || fs::read_dir("/proc/self/task").unwrap().count();
    // A session of its own is not ended with the command.
    let mut source = Source::new(shell("setsid sleep 3 & echo 'ups.status: OL'"), PATIENCE);
    let before = threads();
    for _ in 0..60 {
        assert_eq!(source.reading(), parse("ups.status: OL").map(Some));
    }
    // Tests beside this one have some, too.
    assert!(threads() < before + 40, "{before} threads before, and now {}", threads());
}

#[test]
fn what_others_can_write_is_not_run_and_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("upsc");
    fs::write(&program, "#!/bin/sh\necho 'ups.status: OL'\n").unwrap();
    let set_mode = |path: &Path, mode| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs::set_permissions(path, mode).unwrap();
    };
    set_mode(&program, 0o755);
    let ask = || {
        let kind = Kind::Command(vec![program.to_str().unwrap().into()]);
        Source::new(kind, PATIENCE).reading()
    };
    assert_eq!(ask(), parse("ups.status: OL").map(Some));
    set_mode(&program, 0o777);
    assert!(ask().unwrap_err().contains("running"), "everybody could have written it");
    set_mode(&program, 0o755);
    set_mode(directory.path(), 0o777);
    assert!(ask().is_err(), "everybody could have put it there");
    set_mode(directory.path(), 0o700);
    let path = directory.path().join("reading");
    let mut source = Source::new(Kind::File(path.clone()), PATIENCE);
    fs::write(&path, "ups.status: OL\n").unwrap();
    set_mode(&path, 0o666);
    assert!(source.reading().unwrap_err().contains("reading"), "everybody can write it");
}

#[test]
fn a_file_whose_last_line_has_no_end_is_not_whole() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("reading");
    let mut source = Source::new(Kind::File(path.clone()), PATIENCE);
    fs::write(&path, "ups.status: OL\n").unwrap();
    assert_eq!(source.reading(), Ok(None));
    fs::write(&path, "ups.status: OL LB").unwrap();
    assert!(source.reading().unwrap_err().contains("no end"));
}
