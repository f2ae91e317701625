//! Rules about the files of a crate: they import each other downwards.
//!
//! Promise: files that import each other in a circle are a fault unless ARCHITECTURE.md lists them
//! with a reason, and so is a listed file that is in no circle.
//! Never: takes for an import what a file only hands on (`pub use`), or a call of a method.

use std::collections::{BTreeMap, BTreeSet};

use super::fault::Fault;
use crate::source::{File, Tree};

const LIST: &str = "ARCHITECTURE.md";
const FENCE: &str = "```circles";

/// Names that are handed on more often than this are handed on in a circle.
const HANDS_MAX: usize = 16;

/// Names, from the root of a crate down or as they are written.
type Path = Vec<String>;

/// One file of a crate.
#[derive(Default)]
struct Module {
    uses: Vec<Use>,
    /// Every path in it, outside of the uses.
    paths: Vec<Path>,
}

/// One name that a file gets from elsewhere.
struct Use {
    path: Path,
    /// What it is called in the file.
    name: String,
    /// It is handed on, and not used.
    is_face: bool,
}

/// The files of one crate, by where they stand.
type Modules = BTreeMap<Path, Module>;

/// One line of the list.
struct Listed<'a> {
    line: usize,
    name: &'a str,
    files: BTreeSet<String>,
}

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let Some(text) = tree.get(LIST).map(|file| file.text.as_str()) else { return Vec::new() };
    let (listed, mut faults) = listed(text);
    let mut circling = BTreeSet::new();
    for (name, modules) in crates(tree) {
        for circle in circles(&modules) {
            let is_listed = |it: &Listed<'_>| it.name == name && circle.is_subset(&it.files);
            if !listed.iter().any(is_listed) {
                faults.push(Fault::new(LIST, 1, refusal(name, &circle)));
            }
            circling.extend(circle.into_iter().map(|file| (name, file)));
        }
    }
    for Listed { line, name, files } in listed {
        let gone = files.into_iter().filter(|file| !circling.contains(&(name, file.clone())));
        let fix = |file| format!("{name}: {file} is in no circle; remove it from the list");
        faults.extend(gone.map(|file| Fault::new(LIST, line, fix(file))));
    }
    faults
}

fn refusal(name: &str, circle: &BTreeSet<String>) -> String {
    let files: Vec<&str> = circle.iter().map(String::as_str).collect();
    let files = files.join(", ");
    format!(
        "{name}: {files} import each other in a circle; move what they share below them, or list \
         them below {FENCE} as `{name}: {files}: reason`"
    )
}

/// The lines of the list, and those that have no reason.
fn listed(text: &str) -> (Vec<Listed<'_>>, Vec<Fault>) {
    let inside = text.lines().enumerate().skip_while(|(_, line)| *line != FENCE).skip(1);
    let (mut listed, mut faults) = (Vec::new(), Vec::new());
    for (at, text) in inside.take_while(|(_, line)| !line.starts_with("```")) {
        let mut parts = text.splitn(3, ": ");
        match (parts.next(), parts.next(), parts.next()) {
            (Some(name), Some(files), Some(_)) => {
                let files = files.split(", ").map(str::to_owned).collect();
                listed.push(Listed { line: at + 1, name, files });
            }
            _ => {
                faults.push(Fault::new(LIST, at + 1, "not `crate: files: reason`; write it so"));
            }
        }
    }
    (listed, faults)
}

/// Every crate with its files.
fn crates(tree: &Tree) -> BTreeMap<&str, Modules> {
    let mut crates: BTreeMap<&str, Modules> = BTreeMap::new();
    for file in tree.files.iter().filter(|file| file.is_rust() && !file.is_test()) {
        if let Some((name, place)) = place(file) {
            crates.entry(name).or_default().insert(place, Module::of(&file.code));
        }
    }
    crates
}

/// The crate's folder, and where in it the file stands: nowhere for the root.
fn place(file: &File) -> Option<(&str, Path)> {
    let path = file.path.to_str()?.strip_suffix(".rs")?;
    let (folder, below) = path.split_once("/src/")?;
    let name = folder.strip_prefix("crates/").or_else(|| folder.strip_prefix("lab/"));
    let is_root = matches!(below, "lib" | "main");
    let place = if is_root { Path::new() } else { below.split('/').map(str::to_owned).collect() };
    Some((name.unwrap_or(folder), place))
}

impl Module {
    fn of(code: &str) -> Module {
        let (mut uses, mut rest, mut lines) = (Vec::new(), String::new(), code.lines());
        while let Some(line) = lines.next() {
            let Some((is_face, start)) = use_in(line) else {
                rest.push_str(line);
                rest.push('\n');
                continue;
            };
            let mut names = start.to_owned();
            while !names.contains(';') {
                let Some(line) = lines.next() else { break };
                names.push_str(line.trim());
            }
            take_uses(names.trim_end_matches(';'), &Path::new(), is_face, &mut uses);
        }
        uses.iter_mut().for_each(|it| it.is_face &= !mentions(&rest, &it.name));
        Module { uses, paths: paths(&rest) }
    }
}

/// Whether the line begins to use a name that it hands on, and what follows the word.
fn use_in(line: &str) -> Option<(bool, &str)> {
    let line = line.trim();
    if let Some(names) = line.strip_prefix("use ") {
        return Some((false, names));
    }
    let (visibility, names) = line.split_once(" use ")?;
    let is_face = visibility == "pub" || (visibility.starts_with("pub(") && line.contains(") use"));
    is_face.then_some((true, names))
}

/// Every name of a tree such as `one::{two, three::{four as five}}`.
fn take_uses(names: &str, before: &Path, is_face: bool, uses: &mut Vec<Use>) {
    let names = names.trim();
    if let Some((head, tree)) = names.split_once('{') {
        let before = [before.clone(), segments(head)].concat();
        let tree = tree.rsplit_once('}').map_or(tree, |(tree, _)| tree);
        for part in parts(tree) {
            take_uses(part, &before, is_face, uses);
        }
        return;
    }
    let (path, alias) = names.split_once(" as ").map_or((names, None), |(of, by)| (of, Some(by)));
    let mut path = [before.clone(), segments(path)].concat();
    path.pop_if(|last| last == "self" && !before.is_empty());
    let name = alias.map(|alias| alias.trim().to_owned()).or_else(|| path.last().cloned());
    uses.extend(name.map(|name| Use { path, name, is_face }));
}

/// What commas part that stand in no braces.
fn parts(tree: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    let parts = tree.split(move |letter| {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        letter == ',' && depth == 0
    });
    parts.filter(|part| !part.trim().is_empty())
}

/// Whether the code uses the name, besides declaring a file of that name.
fn mentions(code: &str, name: &str) -> bool {
    let words = code.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let words = words.filter(|word| !word.is_empty());
    words.clone().zip(words.skip(1)).any(|(before, word)| word == name && before != "mod")
}

fn segments(path: &str) -> Path {
    path.split("::").map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// The paths of several names in code.
fn paths(code: &str) -> Vec<Path> {
    let is_apart = |letter: char| !letter.is_alphanumeric() && !matches!(letter, '_' | ':');
    code.split(is_apart).map(segments).filter(|path| path.len() > 1).collect()
}

/// The path from the root of the crate; none for what another crate has.
fn absolute(modules: &Modules, at: &[String], path: &[String], hands: usize) -> Option<Path> {
    let (first, rest) = path.split_first()?;
    match first.as_str() {
        "crate" => return Some(rest.to_vec()),
        "self" => return Some([at, rest].concat()),
        "super" if rest.first().is_some_and(|next| next == "super") => {
            return absolute(modules, at.split_last()?.1, rest, hands);
        }
        "super" => return Some([at.split_last()?.1, rest].concat()),
        _ => {}
    }
    let below = [at, path].concat();
    if modules.contains_key(&below[..=at.len()]) {
        return Some(below);
    }
    let used = modules.get(at)?.uses.iter().find(|it| it.name == *first && hands > 0)?;
    let used = absolute(modules, at, &used.path, hands - 1)?;
    Some([used, rest.to_vec()].concat())
}

/// The file that has what this path names, wherever it is handed on.
fn home(modules: &Modules, path: &[String], hands: usize) -> Option<Path> {
    let is_file = |length: &usize| modules.contains_key(&path[..*length]);
    let length = (0..=path.len()).rev().find(is_file)?;
    let (place, name) = (&path[..length], path.get(length)?);
    match modules[place].uses.iter().find(|it| it.name == *name) {
        Some(_) if hands == 0 => None,
        Some(used) => home(modules, &absolute(modules, place, &used.path, hands)?, hands - 1),
        None => Some(place.to_vec()),
    }
}

/// The files that a file takes something from.
fn imports(modules: &Modules, place: &Path) -> BTreeSet<Path> {
    let module = &modules[place];
    let used = module.uses.iter().filter(|it| !it.is_face).map(|it| &it.path);
    let homes = used.chain(&module.paths).filter_map(|path| {
        let path = absolute(modules, place, path, HANDS_MAX)?;
        home(modules, &path, HANDS_MAX)
    });
    // The root hands on what the crate has.
    homes.filter(|home| home != place && !home.is_empty()).collect()
}

/// The circles of a crate, each the names of its files.
fn circles(modules: &Modules) -> Vec<BTreeSet<String>> {
    let places = modules.keys().filter(|place| !place.is_empty());
    let arrows: BTreeMap<&Path, BTreeSet<Path>> =
        places.map(|place| (place, imports(modules, place))).collect();
    let reached: BTreeMap<&Path, BTreeSet<&Path>> =
        arrows.keys().map(|place| (*place, reached(&arrows, place))).collect();
    let circle = |(place, below): (&&Path, &BTreeSet<&Path>)| {
        let mutual = below.iter().filter(|other| reached[*other].contains(place));
        mutual.map(|other| other.join("/")).collect::<BTreeSet<String>>()
    };
    let circles: BTreeSet<_> = reached.iter().map(circle).filter(|it| it.len() > 1).collect();
    circles.into_iter().collect()
}

/// Every file that a file imports, at once or by way of others.
fn reached<'a>(arrows: &'a BTreeMap<&Path, BTreeSet<Path>>, from: &Path) -> BTreeSet<&'a Path> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![&arrows[from]]);
    while let Some(next) = open.pop() {
        for place in next {
            if reached.insert(place) {
                open.push(&arrows[place]);
            }
        }
    }
    reached
}
