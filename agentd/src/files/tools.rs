//! The tools by name: what a model is told of each, and who does the work.

use super::params::{Args, Param, Takes, schema};
use super::report::Failure;
use super::rpc::Server;
use super::{edit, glob, grep, list, read};
use serde_json::{Value, json};

/// One tool.
pub(super) struct Tool {
    /// Its name.
    pub(super) name: &'static str,
    says: &'static str,
    params: &'static [Param],
    writes: bool,
    run: fn(&mut Server, &Args) -> Result<Value, Failure>,
}

impl Tool {
    /// Checks the arguments and does the work.
    pub(super) fn run(&self, server: &mut Server, given: Option<&Value>) -> Result<Value, Failure> {
        (self.run)(server, &Args::check(self.params, given)?)
    }
}

/// The tools of a session that may write or not.
pub(super) fn offered(write: bool) -> impl Iterator<Item = &'static Tool> {
    TOOLS.iter().filter(move |tool| write || !tool.writes)
}

/// The offered tools as `tools/list` shows them.
pub(super) fn declared(write: bool) -> Vec<Value> {
    let declare = |tool: &Tool| {
        json!({
            "name": tool.name,
            "description": tool.says,
            "inputSchema": schema(tool.params),
            "annotations": {"readOnlyHint": !tool.writes, "destructiveHint": tool.writes, "openWorldHint": false},
        })
    };
    offered(write).map(declare).collect()
}

const PATH_OF_FILE: Param =
    Param { name: "path", takes: Takes::Text, says: "The file, relative to the served folder." };

const PATH_OR_ROOT: Param = Param {
    name: "path",
    takes: Takes::TextOr("."),
    says: "The folder, relative to the served folder; \".\" is the served folder itself.",
};

const TOOLS: &[Tool] = &[
    Tool {
        name: "list",
        says: "Lists what is directly in a folder, sorted by name: name, kind (file, dir, link, other) and size in \
               bytes (0 for what is not a file). Start here to see what there is.",
        params: &[PATH_OR_ROOT],
        writes: false,
        run: list::list,
    },
    Tool {
        name: "read",
        says: "Reads lines of a text file. Gives the text, how many lines it holds, and total_lines of the file; \
               when truncated is true, call again with offset = next_offset. Binary files are refused.",
        params: &[
            PATH_OF_FILE,
            Param {
                name: "offset",
                takes: Takes::Count(0, 0, 1_000_000_000_000),
                says: "Lines to skip first.",
            },
            Param { name: "limit", takes: Takes::Count(2_000, 1, 100_000), says: "Most lines to give." },
        ],
        writes: false,
        run: read::read,
    },
    Tool {
        name: "grep",
        says: "Searches the lines of every text file below a folder (or of one file) for a regular expression \
               (Rust syntax, close to Perl's; no look-around). Counts exactly as `grep -rI` does: binary files \
               and links on the way are skipped, folders named .git too. The counts (files_searched, \
               lines_searched, matching_files, matching_lines) are always whole; only the list of matches is cut \
               (truncated). Use literal for plain text.",
        params: &[
            Param { name: "pattern", takes: Takes::Text, says: "What to look for, within one line." },
            Param {
                name: "path",
                takes: Takes::TextOr("."),
                says: "The folder or file, relative to the served folder.",
            },
            Param { name: "literal", takes: Takes::Flag, says: "Take the pattern as plain text." },
            Param { name: "ignore_case", takes: Takes::Flag, says: "Upper and lower case are the same." },
            Param {
                name: "glob",
                takes: Takes::MaybeText,
                says: "Only files that match, such as *.rs (any depth) or src/**/*.rs (a path below the folder).",
            },
            Param {
                name: "max",
                takes: Takes::Count(200, 0, 1_000),
                says: "Most matches to list; 0 gives counts only.",
            },
        ],
        writes: false,
        run: grep::grep,
    },
    Tool {
        name: "glob",
        says: "Finds files below a folder by name, sorted by path. A pattern without / is matched against the \
               file's name at any depth (*.toml); one with / against the path below the folder (src/**/*.rs). \
               Links on the way and folders named .git are not entered. total counts all that match.",
        params: &[
            Param { name: "pattern", takes: Takes::Text, says: "*, ?, [a-z], {a,b}; ** for any folders." },
            PATH_OR_ROOT,
        ],
        writes: false,
        run: glob::glob,
    },
    Tool {
        name: "stat",
        says: "Tells kind (file or dir), size in bytes and time of last change of one path.",
        params: &[Param {
            name: "path",
            takes: Takes::Text,
            says: "The file or folder, relative to the served folder.",
        }],
        writes: false,
        run: list::stat,
    },
    Tool {
        name: "write",
        says: "Writes a whole file, replacing what was there and making missing folders on the way. To change a \
               part of a file, use edit.",
        params: &[PATH_OF_FILE, Param { name: "text", takes: Takes::Text, says: "All of the new content." }],
        writes: true,
        run: edit::write,
    },
    Tool {
        name: "edit",
        says: "Replaces one exact piece of text in a file. The file must have been read in this session and not \
               changed since. old must occur exactly once, unless all is true.",
        params: &[
            PATH_OF_FILE,
            Param {
                name: "old",
                takes: Takes::Text,
                says: "The text to replace, exactly as it stands in the file, with enough around it to be unique.",
            },
            Param { name: "new", takes: Takes::Text, says: "What to put there." },
            Param { name: "all", takes: Takes::Flag, says: "Replace every occurrence." },
        ],
        writes: true,
        run: edit::edit,
    },
];
