//! A screen as SVG: a window with round corners, and text in columns whatever the font is.

use std::fmt::Write;

use vt100::{Cell, Color, Screen};

/// Columns and rows in pixels, and the size of the font.
const COLUMN: f64 = 8.4;
const ROW: u32 = 20;
const FONT: u32 = 14;
/// What is left free around the text, and the height of the bar above it.
const MARGIN: u32 = 18;
const BAR: u32 = 36;

/// Colours of the window: of its ground, its bar, and its text.
const GROUND: &str = "#11151c";
const TOP: &str = "#1b212b";
const TEXT: &str = "#d7dde5";

/// The sixteen colours of a terminal.
const PALETTE: [&str; 16] = [
    "#3b4252", "#f07178", "#8fce6f", "#e6c26a", "#6cb0f5", "#c792ea", "#67c9d6", "#cfd8e3", "#66707f",
    "#ff8b92", "#a9e38c", "#ffd98a", "#8cc4ff", "#dbaeff", "#89e1ec", "#ffffff",
];

/// How a run of cells looks.
#[derive(Clone, PartialEq)]
struct Look {
    colour: String,
    ground: Option<String>,
    bold: bool,
    dim: bool,
    italic: bool,
    underline: bool,
}

/// A picture of all rows up to the last that is not empty.
pub fn picture(screen: &Screen, title: &str) -> String {
    let (rows, columns) = screen.size();
    let (rows, columns) = (rows.get(), columns.get());
    let is_empty = |row: u16| {
        (0..columns)
            .all(|column| screen.cell(row, column).is_none_or(|cell| cell.contents().trim().is_empty()))
    };
    let used = (0..rows).rev().find(|row| !is_empty(*row)).map_or(1, |row| row + 1);
    let width = (f64::from(columns) * COLUMN).ceil() as u32 + 2 * MARGIN;
    let height = u32::from(used) * ROW + BAR + 2 * MARGIN - ROW / 2;
    let mut out = String::new();
    _ = writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" aria-label="{}">
<style>text{{font:{FONT}px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:{TEXT};white-space:pre}}.b{{font-weight:700}}.d{{opacity:.62}}.i{{font-style:italic}}.u{{text-decoration:underline}}</style>
<rect width="{width}" height="{height}" rx="10" fill="{GROUND}"/>
<path d="M0 {BAR}V10A10 10 0 0 1 10 0H{}A10 10 0 0 1 {width} 10V{BAR}Z" fill="{TOP}"/>"#,
        escaped(title),
        width - 10,
    );
    for (at, colour) in ["#f07178", "#e6c26a", "#8fce6f"].iter().enumerate() {
        let x = MARGIN + 4 + 20 * at as u32;
        _ = writeln!(out, r#"<circle cx="{x}" cy="{}" r="6" fill="{colour}"/>"#, BAR / 2);
    }
    _ = writeln!(
        out,
        r#"<text class="d" x="{}" y="{}" text-anchor="middle">{}</text>"#,
        width / 2,
        BAR / 2 + 5,
        escaped(title)
    );
    for row in 0..used {
        let mut column = 0;
        while column < columns {
            let (run, next) = run(screen, row, column, columns);
            if let Some((look, text)) = run {
                draw(&mut out, &look, &text, row, column, next);
            }
            column = next;
        }
    }
    let (row, column) = screen.cursor_position();
    if !screen.hide_cursor() && row < used {
        let (x, y) = at(row, column);
        _ = writeln!(
            out,
            r#"<rect x="{x:.1}" y="{y}" width="{COLUMN}" height="{}" fill="{TEXT}" opacity=".75"/>"#,
            ROW - 3
        );
    }
    out.push_str("</svg>\n");
    out
}

/// Where a cell begins.
fn at(row: u16, column: u16) -> (f64, u32) {
    (f64::from(MARGIN) + f64::from(column) * COLUMN, BAR + MARGIN / 2 + 4 + u32::from(row) * ROW)
}

/// Cells that look the same from this one on, if there is anything to be drawn, and where the next begin.
fn run(screen: &Screen, row: u16, from: u16, columns: u16) -> (Option<(Look, String)>, u16) {
    let Some(first) = screen.cell(row, from).map(look) else { return (None, from + 1) };
    let (mut text, mut next) = (String::new(), from);
    while next < columns {
        let Some(cell) = screen.cell(row, next) else { break };
        if look(cell) != first {
            break;
        }
        // A wide character takes two cells, the second of which has nothing.
        if !cell.is_wide_continuation() {
            text.push_str(if cell.has_contents() { cell.contents() } else { " " });
        }
        next += 1;
    }
    let is_drawn = first.ground.is_some() || !text.trim().is_empty();
    (is_drawn.then_some((first, text)), next.max(from + 1))
}

fn draw(out: &mut String, look: &Look, text: &str, row: u16, from: u16, next: u16) {
    let (x, y) = at(row, from);
    if let Some(ground) = &look.ground {
        let width = f64::from(next - from) * COLUMN;
        _ = writeln!(out, r#"<rect x="{x:.1}" y="{y}" width="{width:.1}" height="{ROW}" fill="{ground}"/>"#);
    }
    let before = text.chars().take_while(|c| *c == ' ').count();
    let text = text.trim();
    if text.is_empty() {
        return;
    }
    let x = x + before as f64 * COLUMN;
    let columns: usize = text.chars().filter_map(unicode_width::UnicodeWidthChar::width).sum();
    let classes: Vec<&str> = [(look.bold, "b"), (look.dim, "d"), (look.italic, "i"), (look.underline, "u")]
        .into_iter()
        .filter_map(|(is, class)| is.then_some(class))
        .collect();
    let class = if classes.is_empty() { String::new() } else { format!(r#" class="{}""#, classes.join(" ")) };
    let fill = if look.colour == TEXT { String::new() } else { format!(r#" style="fill:{}""#, look.colour) };
    _ = writeln!(
        out,
        r#"<text{class}{fill} x="{x:.1}" y="{}" textLength="{:.1}" lengthAdjust="spacingAndGlyphs">{}</text>"#,
        y + FONT,
        columns as f64 * COLUMN,
        escaped(text)
    );
}

fn look(cell: &Cell) -> Look {
    let (text, ground) = (colour(cell.fgcolor()), colour(cell.bgcolor()));
    let (text, ground) = match cell.inverse() {
        true => {
            (Some(ground.unwrap_or_else(|| GROUND.to_owned())), Some(text.unwrap_or_else(|| TEXT.to_owned())))
        }
        false => (text, ground),
    };
    Look {
        colour: text.unwrap_or_else(|| TEXT.to_owned()),
        ground,
        bold: cell.bold(),
        dim: cell.dim(),
        italic: cell.italic(),
        underline: cell.underline(),
    }
}

/// A colour other than the usual one.
fn colour(colour: Color) -> Option<String> {
    match colour {
        Color::Default => None,
        Color::Rgb(red, green, blue) => Some(format!("#{red:02x}{green:02x}{blue:02x}")),
        Color::Idx(index @ 0..16) => Some(PALETTE[usize::from(index)].to_owned()),
        // A cube of six steps each, and twenty-four greys.
        Color::Idx(index @ 16..232) => {
            let step = |value: u8| if value == 0 { 0 } else { 55 + 40 * value };
            let index = index - 16;
            Some(format!("#{:02x}{:02x}{:02x}", step(index / 36), step(index / 6 % 6), step(index % 6)))
        }
        Color::Idx(index) => {
            let grey = 8 + 10 * (index - 232);
            Some(format!("#{grey:02x}{grey:02x}{grey:02x}"))
        }
    }
}

/// Text of XML. Spaces stay where they are, whatever a viewer makes of several.
fn escaped(text: &str) -> String {
    text.replace(' ', "\u{a0}")
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
