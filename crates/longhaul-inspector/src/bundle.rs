//! The page's modules as one classic script. A page that was opened from disk may not load modules; this makes of
//! each module a function of its own, in the order in which they need each other. It reads the few forms that our own
//! modules are written in, and a test sees to it that they are.

use std::collections::HashSet;

use regex::Regex;

use crate::assets;

/// The module that the page begins with.
const FIRST: &str = "app.js";

/// All modules as one script; or what cannot be read.
pub(crate) fn bundle() -> Result<String, String> {
    let source = |name: &str| {
        let asset = assets::find(name).ok_or_else(|| format!("there is no module {name}"))?;
        std::str::from_utf8(asset.bytes).map_err(|_| format!("the module {name} is no text"))
    };
    let mut out = String::from("'use strict';\n(() => {\nconst modules = {};\n");
    let (mut seen, mut path) = (HashSet::new(), Vec::new());
    add(FIRST, &source, &mut seen, &mut path, &mut out)?;
    out.push_str("})();\n");
    Ok(out)
}

fn add<'a>(
    name: &str,
    source: &impl Fn(&str) -> Result<&'a str, String>,
    seen: &mut HashSet<String>,
    path: &mut Vec<String>,
    out: &mut String,
) -> Result<(), String> {
    if path.iter().any(|above| above == name) {
        return Err(format!("the modules need each other in a circle: {} → {name}", path.join(" → ")));
    }
    if !seen.insert(name.to_owned()) {
        return Ok(());
    }
    path.push(name.to_owned());
    let wrong = |error: regex::Error| error.to_string();
    let import = Regex::new(r#"(?m)^import\s*\{([^}]*)\}\s*from\s*['"]\./([^'"]+)['"];?$"#).map_err(wrong)?;
    let export = Regex::new(r"(?m)^export ((?:async )?function\*?|const|let|class) +([A-Za-z_$][\w$]*)")
        .map_err(wrong)?;
    let renamed = Regex::new(r"([\w$]+)\s+as\s+([\w$]+)").map_err(wrong)?;
    let text = source(name)?;
    for found in import.captures_iter(text) {
        add(&found[2], source, seen, path, out)?;
    }
    let body = import.replace_all(text, |found: &regex::Captures<'_>| {
        let names = renamed.replace_all(&found[1], "$1: $2").trim().to_owned();
        format!("const {{ {names} }} = modules['{}']", &found[2])
    });
    let names: Vec<String> = export.captures_iter(text).map(|found| found[2].to_owned()).collect();
    let body = export.replace_all(&body, "$1 $2");
    let is_left = |line: &&str| line.starts_with("import ") || line.starts_with("export ");
    if let Some(line) = body.lines().find(is_left) {
        return Err(format!("{name}: {line:?} is a form that cannot be bundled"));
    }
    out.push_str(&format!(
        "modules['{name}'] = (() => {{\n{body}\nreturn {{ {} }};\n}})();\n",
        names.join(", ")
    ));
    path.pop();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_modules_of_the_page_can_be_bundled() {
        let script = bundle().unwrap();
        assert!(!script.lines().any(|line| line.starts_with("import ") || line.starts_with("export ")));
        // All modules are in it, those first that others need.
        let place = |name: &str| script.find(&format!("modules['{name}'] = ")).unwrap();
        assert!(place("dom.js") < place("app.js") && place("api.js") < place("call.js"));
    }

    #[test]
    fn other_forms_and_circles_are_said() {
        let bundled = |files: &[(&str, &'static str)]| {
            let source = |name: &str| {
                files
                    .iter()
                    .find(|(known, _)| *known == name)
                    .map(|(_, text)| *text)
                    .ok_or("missing".to_owned())
            };
            let mut out = String::new();
            add(files[0].0, &source, &mut HashSet::new(), &mut Vec::new(), &mut out).map(|()| out)
        };
        let good = bundled(&[
            ("a.js", "import { b as c } from './b.js'\nexport const x = c\n"),
            ("b.js", "export async function b() {}\nlet y = 1\n"),
        ]);
        let good = good.unwrap();
        assert!(
            good.contains("const { b: c } = modules['b.js']") && good.contains("return { x };"),
            "{good}"
        );
        assert!(good.contains("async function b() {}") && good.contains("return { b };"), "{good}");
        assert!(bundled(&[("a.js", "export default 1\n")]).unwrap_err().contains("cannot be bundled"));
        let circle = [("a.js", "import { b } from './b.js'\n"), ("b.js", "import { a } from './a.js'\n")];
        assert!(bundled(&circle).unwrap_err().contains("circle"));
    }
}
