//! What is installed: pages, completions, units, and a configuration that is not written over.

use crate::fixture::Fixture;
use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn every_command_has_a_page_and_shells_complete_them() {
    let fixture = Fixture::new();
    let folder = fixture.path("manual");
    fixture.holdfast(&["manual", folder.to_str().unwrap()]).succeeded();
    let pages: Vec<String> = fs::read_dir(folder.join("man1"))
        .unwrap()
        .map(|page| page.unwrap().file_name().into_string().unwrap())
        .collect();
    for page in ["holdfast.1", "holdfast-serve.1", "holdfast-volume-make.1", "holdfast-store-get.1"]
    {
        assert!(pages.iter().any(|it| it == page), "no {page} in {pages:?}");
    }
    assert!(!pages.iter().any(|it| it == "holdfast-front.1"), "what the keeper starts is shown");
    for shell in ["holdfast.bash", "_holdfast", "holdfast.fish"] {
        let text = fs::read_to_string(folder.join("completions").join(shell)).unwrap();
        assert!(text.contains("volume") && text.contains("umount"), "{shell}");
    }
}

/// Installs below a folder; whether that was done.
fn installs(root: &Path, prefix: &str) -> bool {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/install");
    let binary = env!("CARGO_BIN_EXE_holdfast");
    Command::new(script).arg(root).arg(prefix).arg(binary).status().unwrap().success()
}

fn install(root: &Path) {
    assert!(installs(root, "/opt/holdfast"));
}

#[test]
fn a_prefix_that_would_mean_something_else_in_a_unit_is_refused_before_anything_is_put_anywhere() {
    let fixture = Fixture::new();
    let root = fixture.path("root");
    for prefix in ["/opt/a&b", "/opt/a#b", "/opt/a b", "/opt/100%n", "relative", "/opt/a\\1b"] {
        assert!(!installs(&root, prefix), "{prefix}");
    }
    assert!(!root.exists());
}

#[test]
fn what_is_installed_runs_from_where_it_is_and_a_configuration_stays() {
    let fixture = Fixture::new();
    let root = fixture.path("root");
    install(&root);
    let config = root.join("etc/holdfast.toml");
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
    for unit in ["holdfast.service", "holdfast-volume@.service"] {
        let text = read(&format!("opt/holdfast/lib/systemd/system/{unit}"));
        assert!(text.contains("=/opt/holdfast/bin/holdfast "), "{text}");
    }
    // Each line is a comment: nothing is served before somebody says so.
    let lines = fs::read_to_string(&config).unwrap();
    assert!(lines.lines().all(|line| line.starts_with('#') || line.is_empty()), "{lines}");
    let example = lines.lines().filter_map(|line| line.strip_prefix("# "));
    let example: Vec<&str> = example.skip_while(|line| !line.starts_with('[')).collect();
    assert!(example.join("\n").parse::<toml::Table>().is_ok(), "{example:?}");
    fs::write(&config, "# mine\n").unwrap();
    install(&root);
    assert_eq!(fs::read_to_string(&config).unwrap(), "# mine\n");
    assert!(root.join("opt/holdfast/share/man/man1/holdfast.1").exists());
}
