//! Words in SVG.
//!
//! Promise: text that came from elsewhere stands between two tags as it reads.
//! Never: decides where on the page a word goes.

pub(crate) fn label(x: f64, y: f64, colour: &str, words: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{colour}\">{words}</text>\n")
}

/// Text as it may stand between two tags.
#[must_use]
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
