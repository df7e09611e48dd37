//! The files of the page, inside the binary. Adding one is a line of the table.

use std::sync::OnceLock;

/// A file of the page.
pub(crate) struct Asset {
    /// Its name under `page/`; the first one is the page itself.
    pub(crate) name: &'static str,
    pub(crate) bytes: &'static [u8],
}

macro_rules! assets {
    ($($name:literal),* $(,)?) => {
        &[$(Asset { name: $name, bytes: include_bytes!(concat!("../page/", $name)) }),*]
    };
}

/// All of them.
pub(crate) const ASSETS: &[Asset] = assets![
    "index.html",
    "api.js",
    "app.js",
    "bring_back.js",
    "call.js",
    "categories.js",
    "dom.js",
    "find.js",
    "keys.js",
    "list.js",
    "long_text.js",
    "part.js",
    "preview.js",
    "search.js",
    "session.js",
    "sessions.js",
    "steering.js",
    "strip.js",
    "style.css",
    "text.js",
    "timeline.js",
    "what_if.js",
    "vendor/uPlot.iife.min.js",
    "vendor/uPlot.min.css",
];

/// A file by its name.
pub(crate) fn find(name: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.name == name)
}

impl Asset {
    /// What a browser is told that it is.
    pub(crate) fn kind(&self) -> &'static str {
        match self.name.rsplit('.').next() {
            Some("html") => "text/html; charset=utf-8",
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            Some("png") => "image/png",
            Some("woff2") => "font/woff2",
            _ => "text/plain; charset=utf-8",
        }
    }

    /// The hash of what it holds, by which a browser knows that it has it.
    pub(crate) fn tag(&self) -> &'static str {
        static TAGS: OnceLock<Vec<String>> = OnceLock::new();
        let tag = |asset: &Asset| format!("\"{}\"", &blake3::hash(asset.bytes).to_hex().as_str()[..16]);
        let tags = TAGS.get_or_init(|| ASSETS.iter().map(tag).collect());
        let at = ASSETS.iter().position(|asset| asset.name == self.name);
        at.and_then(|at| tags.get(at)).map_or("", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page stays small: it is loaded before anything can be seen.
    #[test]
    fn the_page_is_at_most_300_kilobytes() {
        let bytes: usize = ASSETS.iter().map(|asset| asset.bytes.len()).sum();
        assert!(bytes <= 300_000, "{bytes}");
        assert_eq!(ASSETS[0].name, "index.html");
        assert_eq!(find("index.html").map(|asset| asset.tag().len()), Some(18));
    }

    /// The policy of the page forbids script and style inside it: a file that has some would not work.
    #[test]
    fn no_page_has_script_or_style_inside() {
        for asset in ASSETS.iter().filter(|asset| asset.name.ends_with(".html")) {
            let text = std::str::from_utf8(asset.bytes).unwrap().to_lowercase();
            for open in text.split("<script").skip(1) {
                assert!(open.split('>').next().unwrap().contains("src="), "{}", asset.name);
            }
            assert!(!text.contains("<style") && !text.contains(" style=") && !text.contains(" onclick="));
        }
    }
}
