//! One canary per rule: a sample that must be refused, beside one that must not.
//!
//! Promise: a rule that stops refusing fails here.
//! Never: reads the repository.

use std::path::PathBuf;

use super::*;
use crate::source::File;

const HEAD: &str = "//! A sample.\n//!\n//! Promise: none.\n//! Never: ships.\n";

fn tree(files: &[(&str, &str)]) -> Tree {
    let files = files.iter().map(|(path, text)| File::new(*path, *text)).collect();
    Tree { root: PathBuf::from("/nonexistent"), files }
}

/// What the rule says about one source file with a proper head.
fn says(rule: Rule, body: &str) -> String {
    says_of(rule, "crates/log/src/log.rs", &format!("{HEAD}{body}"))
}

fn says_of(rule: Rule, path: &str, text: &str) -> String {
    let faults = rule(&tree(&[(path, text)]));
    faults.iter().map(|fault| format!("{fault}\n")).collect()
}

#[test]
fn clean_code_breaks_no_rule() {
    let body = "fn f() -> u32 {\n    // todo! and unsafe { are only words here\n    1\n}\n";
    for rule in [text::check, length::check, words::check, edges::check] {
        assert_eq!(says(rule, body), "");
    }
}

#[test]
fn a_wide_line_a_trailing_space_and_a_foreign_letter_are_refused() {
    assert!(says(text::check, &format!("// {}\n", "x".repeat(98))).contains("101 columns"));
    assert!(says(text::check, "fn f() {} \n").contains("trailing space"));
    assert!(says(text::check, "// caf\u{e9}\n").contains("not ASCII"));
}

#[test]
fn a_file_without_contract_or_of_too_many_lines_is_refused() {
    let path = "crates/log/src/log.rs";
    assert!(says_of(text::check, path, "fn f() {}\n").contains("no contract"));
    assert!(says_of(text::check, path, "//! Job.\n").contains("Promise"));
    assert!(says_of(text::check, path, "//! Job.\n//! Promise: x.\n").contains("Never"));
    assert!(says(text::check, &"\n".repeat(850)).contains("854 lines"));
}

#[test]
fn a_module_without_a_name_of_its_own_is_refused() {
    let said = |path| says_of(text::check, path, HEAD);
    assert!(said("crates/io/src/real/mod.rs").contains("named as its folder"));
    assert_eq!(said("crates/io/src/real.rs"), "");
}

#[test]
fn a_function_of_71_lines_is_refused_and_one_of_70_is_not() {
    let function = |lines: usize| format!("fn f() {{{}}}\n", "\n".repeat(lines - 1));
    assert!(says(length::check, &function(71)).contains("71 lines in one function"));
    assert_eq!(says(length::check, &function(70)), "");
}

#[test]
fn a_core_of_1601_lines_is_refused() {
    let text = "\n".repeat(1_601);
    assert!(says_of(length::check, "crates/core/src/lib.rs", &text).contains("1601"));
    assert_eq!(says_of(length::check, "crates/core/src/lib/tests.rs", &text), "");
}

#[test]
fn each_forbidden_word_is_refused_outside_tests() {
    let body = "fn f() {\n    println!();\n    todo!();\n    g().unwrap();\n    dbg!(1);\n}\n";
    let said = says(words::check, body);
    for word in ["println!", "todo!", ".unwrap()", "dbg!"] {
        assert!(said.contains(word), "{word} is missing in {said}");
    }
    assert_eq!(says_of(words::check, "crates/log/tests/it/main.rs", body), "");
}

#[test]
fn tests_inside_a_file_that_ships_are_refused() {
    let said = says(words::check, "#[cfg(test)]\nmod tests {\n    fn f() { g().unwrap() }\n}\n");
    assert!(said.contains("tests inside the file") && !said.contains("unwrap"), "{said}");
}

#[test]
fn a_named_order_needs_its_edge_where_it_is_used() {
    let names =
        ("crates/x/src/orderings.rs", "pub(crate) const SEE: Ordering = Ordering::Acquire;\n");
    let used = "use crate::orderings::{\n    SEE,\n};\nfn f() {\n    x.load(SEE);\n}\n";
    let faults = edges::check(&tree(&[names, ("crates/x/src/y.rs", used)]));
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert_eq!(faults[0].line, 5);
}

#[test]
fn unsafe_is_refused_outside_raw_and_without_safety() {
    let bare = "fn f() {\n    unsafe { g() }\n}\n";
    let said = says(words::check, bare);
    assert!(said.contains("`raw.rs` only") && said.contains("SAFETY"), "{said}");
    let argued = "fn f() {\n    // SAFETY: g has no precondition.\n    unsafe { g() }\n}\n";
    assert_eq!(says_of(words::check, "crates/memory/src/raw.rs", argued), "");
}

#[test]
fn a_todo_without_a_number_is_refused() {
    let note = |rest: &str| ["// TO", "DO ", rest].concat();
    assert!(says(words::check, &note("later\n")).contains("issue number"));
    assert_eq!(says(words::check, &note("#7: later\n")), "");
}

#[test]
fn an_order_without_edge_and_an_edge_with_one_end_are_refused() {
    let store = "fn f() {\n    x.store(1, Ordering::Release);\n}\n";
    assert!(says(edges::check, store).contains("without `// EDGE"));
    let one = format!("// EDGE filled: whole before it is seen.\n{store}");
    assert!(says(edges::check, &one).contains("one end"));
    assert_eq!(says(edges::check, &format!("{one}{one}")), "");
}

#[test]
fn arrows_must_equal_the_picture() {
    let manifest = "[dependencies]\nholdfast-core.workspace = true\n[dev-dependencies]\n\
                    holdfast-io = \"1\"\n";
    let said = |picture: &str| {
        let faults = workspace::check(&tree(&[
            ("ARCHITECTURE.md", picture),
            ("crates/core/Cargo.toml", "[dependencies]\n"),
            ("crates/log/Cargo.toml", manifest),
        ]));
        faults.iter().map(ToString::to_string).collect::<String>()
    };
    assert_eq!(said("```arrows\ncore\nlog -> core\n```\n"), "");
    assert!(said("```arrows\ncore\nlog\n```\n").contains("log -> core is not drawn"));
    assert!(said("```arrows\ncore\nlog -> core, io\n```\n").contains("does not exist"));
    assert!(said("```arrows\nlog -> core\n```\n").contains("core is missing"));
    assert!(said("no picture").contains("draw the crates"));
}

#[test]
fn a_workspace_of_its_own_and_what_is_in_it_are_no_part_of_the_picture() {
    let files = [
        ("ARCHITECTURE.md", "```arrows\n```\n"),
        ("lab/bench/Cargo.toml", "[workspace]\n[dependencies]\nholdfast-io = \"1\"\n"),
        ("lab/bench/common/Cargo.toml", "[dependencies]\nholdfast-io = \"1\"\n"),
    ];
    assert_eq!(workspace::check(&tree(&files)), []);
}

#[test]
fn a_crate_of_the_product_that_knows_one_of_lab_is_refused_and_its_tests_may() {
    let said = |section: &str| {
        let manifest = match section.ends_with("holdfast-demo") {
            true => format!("[{section}]\nworkspace = true\n"),
            false => format!("[{section}]\nholdfast-demo.workspace = true\n"),
        };
        let files = [("crates/log/Cargo.toml", manifest.as_str()), ("lab/demo/Cargo.toml", "")];
        let faults = workspace::check(&tree(&files));
        faults.iter().map(ToString::to_string).collect::<String>()
    };
    for section in ["dependencies", "build-dependencies", "target.'cfg(unix)'.dependencies"] {
        assert!(said(section).contains("log depends on demo, which is in lab/"), "{section}");
    }
    assert!(said("dependencies.holdfast-demo").contains("log depends on demo"));
    for section in ["dev-dependencies", "dev-dependencies.holdfast-demo"] {
        assert!(!said(section).contains("which is in lab/"), "{section}");
    }
}

#[test]
fn a_dependency_of_the_core_is_refused() {
    let files = [("crates/core/Cargo.toml", "[dependencies]\nserde = \"1\"\n")];
    let faults = workspace::check(&tree(&files));
    assert!(faults.iter().any(|fault| fault.fix.contains("core depends on serde")));
}

#[test]
fn a_dead_link_and_a_page_that_nobody_comes_to_are_refused() {
    let note = ("docs/decisions/0001-one.md", "# One\n");
    let said = |readme: &str, text: &str| {
        let files = [("README.md", readme), ("docs/index.md", text), note];
        let faults = links::check(&tree(&files));
        faults.iter().map(ToString::to_string).collect::<String>()
    };
    let to_index = "[index](docs/index.md)";
    assert_eq!(said(to_index, "[one](decisions/0001-one.md)"), "");
    assert!(said(to_index, "[two](decisions/0002-two.md)").contains("does not exist"));
    assert!(said(to_index, "nothing").contains("docs/decisions/0001-one.md:1"));
    let neither = said("", "[one](decisions/0001-one.md)");
    assert_eq!(neither.matches("in two links").count(), 2, "{neither}");
}

#[test]
fn files_that_import_each_other_are_refused_unless_they_are_listed_with_a_reason() {
    let said = |list: &str, open: &str, log: &str| {
        let list = format!("```circles\n{list}```\n");
        let files = [
            ("ARCHITECTURE.md", list.as_str()),
            ("crates/log/src/lib.rs", "mod log;\nmod open;\npub use log::Log;\n"),
            ("crates/log/src/log.rs", log),
            ("crates/log/src/open.rs", open),
        ];
        let faults = circles::check(&tree(&files));
        faults.iter().map(ToString::to_string).collect::<String>()
    };
    let (up, down) = ("use crate::{\n    Log,\n};\n", "fn f() { crate::open::open() }\n");
    assert!(said("", up, down).contains("log: log, open import each other in a circle"));
    assert!(said("", "use super::log::Log as L;\n", down).contains("log: log, open import"));
    assert_eq!(said("", up, "pub use crate::open::open;\n"), "");
    assert_eq!(said("", up, "// crate::open::open\nuse std::fmt;\n"), "");
    assert_eq!(said("log: log, open: one asks the other\n", up, down), "");
    assert!(said("log: log, open\n", up, down).contains("write it so"));
    assert!(said("log: log, open: once\n", up, "").contains("log is in no circle; remove it"));
}

#[test]
fn critical_code_that_grows_or_goes_missing_is_refused() {
    let writer = ("crates/log/src/writer.rs", "fn f() {}\nfn g() {}\n");
    let said = |list: &str| {
        let list = format!("```critical\n{list}\n```\n");
        let faults = critical::check(&tree(&[("ARCHITECTURE.md", &list), writer]));
        faults.iter().map(ToString::to_string).collect::<String>()
    };
    assert_eq!(said("log <= 2: writer"), "");
    assert_eq!(said("log <= 2"), "");
    assert!(said("log <= 1: writer").contains("2 critical lines, at most 1"));
    assert!(said("log <= 2: drain").contains("drain.rs does not exist"));
    assert!(said("log: writer").contains("write it so"));
}

#[test]
fn a_path_that_goes_past_the_door_is_refused() {
    let said = |path: &str, line: &str| {
        let text = format!("{HEAD}{line}\n");
        doors::check(&tree(&[(path, &text)])).iter().map(ToString::to_string).collect::<String>()
    };
    let command = "crates/holdfast/src/commands/vm.rs";
    for call in ["std::fs::write(path, x)", "File::create(path)", "UnixListener::bind(path)"] {
        assert!(said(command, call).contains("use `holdfast_io::private`"), "{call}");
        assert_eq!(said("lab/demo/src/show.rs", call), "");
        assert_eq!(said("crates/holdfast/src/vm/tests.rs", call), "");
    }
    assert_eq!(said(command, "let _ = std::fs::write(\"/proc/self/comm\", NAME);"), "");
    assert_eq!(said(command, "// File::create(path) would follow links"), "");
}

#[test]
fn a_look_at_a_process_beside_the_doors_is_refused() {
    let said = |path: &str, line: &str| says_of(looks::check, path, &format!("{HEAD}{line}\n"));
    let command = "crates/attach/src/users.rs";
    for call in
        ["read(format!(\"/proc/{pid}/maps\"))", "read_dir(\"/proc\")", "pidfd_getfd(it, 3, none)"]
    {
        assert!(said(command, call).contains("may wait for a process for ever"), "{call}");
        assert_eq!(said("crates/machine/src/processes/process.rs", call), "");
        assert_eq!(said("crates/holdfast/src/vm/tests.rs", call), "");
    }
    assert_eq!(said(command, "read(\"/proc/self/mountinfo\")"), "");
}
