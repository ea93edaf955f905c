//! How things look, in colours and without.

use ratatui::style::{Color, Modifier, Style};

/// With `NO_COLOR` there is bold, dim and reverse, and no colour.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    colors: bool,
}

impl Look {
    pub(super) fn new(colors: bool) -> Look {
        Look { colors }
    }

    fn color(self, color: Color) -> Style {
        if self.colors { Style::new().fg(color) } else { Style::new() }
    }

    pub(super) fn head(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(super) fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub(super) fn key(self) -> Style {
        self.color(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    pub(super) fn trouble(self) -> Style {
        self.color(Color::Red).add_modifier(Modifier::BOLD)
    }

    pub(super) fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// Of what a run waits on: trouble stands out, and what needs nobody's look steps back.
    pub(super) fn waits(self, about: &str, is_live: bool) -> Style {
        let begins = |words: &[&str]| words.iter().any(|word| about.starts_with(word));
        if !is_live {
            self.dim()
        } else if about.contains("no pong") {
            self.trouble()
        } else if begins(&["silent", "throttled", "budget"]) {
            self.color(Color::Yellow)
        } else if begins(&["model", "tool"]) {
            self.color(Color::Green)
        } else if begins(&["queued", "ending", "message", "paused"]) {
            self.dim()
        } else {
            Style::new()
        }
    }
}
