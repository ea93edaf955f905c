//! Rows for people: columns as wide as their widest cell, the last one as it is.

use unicode_width::UnicodeWidthStr;

/// A cell longer than this is cut; JSON has the whole.
const CELL: usize = 60;

/// The rows below their heads; nothing but the heads when there are none. A cell is one line.
pub(super) fn table(heads: &[&str], rows: Vec<Vec<String>>) -> String {
    let heads: Vec<String> = heads.iter().map(|head| (*head).to_owned()).collect();
    let rows: Vec<Vec<String>> =
        [heads].into_iter().chain(rows).map(|row| row.iter().map(|cell| one_line(cell)).collect()).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|at| rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.width()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(cell);
            line.push_str(&" ".repeat(width - cell.width() + 2));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn one_line(cell: &str) -> String {
    let mut chars = cell.chars().map(|c| if c == '\n' || c == '\t' { ' ' } else { c });
    let mut head: String = chars.by_ref().take(CELL).collect();
    if chars.next().is_some() {
        head.push('…');
    }
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_whatever_is_in_them() {
        let rows = vec![
            vec!["sub-1".into(), "läuft\nnoch".into(), "x".repeat(70)],
            vec!["root".into(), "ok".into(), String::new()],
        ];
        let text = table(&["HANDLE", "WAITS ON", "TITLE"], rows);
        let wanted =
            format!("HANDLE  WAITS ON    TITLE\nsub-1   läuft noch  {}…\nroot    ok\n", "x".repeat(60));
        assert_eq!(text, wanted);
    }
}
