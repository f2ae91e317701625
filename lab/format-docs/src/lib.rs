//! The tables of a FORMAT.md, for the tests that compare them with the code.
//!
//! Promise: a table is read as people read it; a section, a row or a number that is missing ends
//! the test that asks for it.
//! Never: knows a format, or is in a program.

use std::ops::Range;

/// A FORMAT.md.
#[derive(Clone, Copy, Debug)]
pub struct Tables(&'static str);

/// A field: its name, and the bytes that it takes.
pub type Field = (&'static str, Range<usize>);

impl Tables {
    /// Those of this text.
    #[must_use]
    pub const fn of(text: &'static str) -> Tables {
        Tables(text)
    }

    /// All of the text, with single blanks between its words.
    #[must_use]
    pub fn words(self) -> String {
        self.0.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// The cells of each row of a section's table, without its head.
    ///
    /// # Panics
    /// If there is no such section.
    #[must_use]
    pub fn rows(self, section: &str) -> Vec<Vec<&'static str>> {
        let heading = format!("\n## {section}\n");
        let (_, text) = self.0.split_once(&heading).expect("the section is there");
        let text = text.split("\n## ").next().expect("a split has a first part");
        let lines = text.lines().filter(|line| line.starts_with("| ")).skip(1);
        lines.map(|line| line.split('|').map(str::trim).skip(1).collect()).collect()
    }

    /// The fields of a table of bytes, whose columns begin with offset, size and name. Those whose
    /// offset or size is no number are left out.
    ///
    /// # Panics
    /// As [`Tables::rows`].
    #[must_use]
    pub fn fields(self, section: &str) -> Vec<Field> {
        let field = |row: Vec<&'static str>| {
            let (offset, size): (usize, usize) = (row[0].parse().ok()?, row[1].parse().ok()?);
            Some((row[2].trim_matches('`'), offset..offset + size))
        };
        self.rows(section).into_iter().filter_map(field).collect()
    }

    /// Where a table of bytes puts a field.
    ///
    /// # Panics
    /// If it does not.
    #[must_use]
    pub fn place(self, section: &str, name: &str) -> Range<usize> {
        let fields = self.fields(section);
        let field = fields.into_iter().find(|field| field.0 == name);
        field.unwrap_or_else(|| panic!("{section}: {name} is not told")).1
    }

    /// The fields of a table of bytes, which must follow one another from 0 to `bytes`.
    ///
    /// # Panics
    /// If they do not.
    pub fn gapless(self, section: &str, bytes: usize) -> Vec<Field> {
        let fields = self.fields(section);
        let end = fields.iter().fold(0, |end, (name, place)| {
            assert_eq!(place.start, end, "{section}: {name}");
            place.end
        });
        assert_eq!(end, bytes, "{section}");
        fields
    }

    /// A table whose columns begin with number and name.
    ///
    /// # Panics
    /// If a row has no number.
    #[must_use]
    pub fn numbers(self, section: &str) -> Vec<(u64, String)> {
        let number = |row: Vec<&str>| {
            (row[0].parse().expect("a number"), row[1].trim_matches('`').to_owned())
        };
        self.rows(section).into_iter().map(number).collect()
    }
}

/// The fields in which two encodings differ, in order. What is behind the last field is not looked
/// at.
///
/// # Panics
/// If they differ between fields.
#[must_use]
pub fn changed(fields: &[Field], before: &[u8], after: &[u8]) -> Vec<&'static str> {
    let field = |at: usize| {
        let field = fields.iter().find(|(_, place)| place.contains(&at));
        field.unwrap_or_else(|| panic!("byte {at} has no field")).0
    };
    let bytes = before.len().min(after.len()).min(fields.last().map_or(0, |last| last.1.end));
    let differ = (0..bytes).filter(|at| before[*at] != after[*at]);
    let mut names: Vec<_> = differ.map(field).collect();
    names.dedup();
    names
}

/// The constants `pub const NAME: usize = N;` of a file, with their names as tables have them.
///
/// # Panics
/// If one is no number.
#[must_use]
pub fn constants(code: &str) -> Vec<(u64, String)> {
    let constant = |line: &str| {
        let (name, number) = line.strip_prefix("pub const ")?.split_once(": usize = ")?;
        let number = number.trim_end_matches(';').parse().expect("a number");
        Some((number, name.to_lowercase()))
    };
    code.lines().filter_map(constant).collect()
}

#[cfg(test)]
mod tests;
