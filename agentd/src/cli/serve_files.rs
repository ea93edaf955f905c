//! `agentd mcp serve-files`: the built-in file server for any MCP client.

use super::exit;
use clap::Args;
use std::io;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(super) struct ServeFilesArgs {
    /// The folder; nothing outside it can be reached.
    #[arg(long, value_name = "DIR")]
    root: PathBuf,
    /// Offer `write` and `edit` too.
    #[arg(long)]
    write: bool,
}

/// Serves until stdin ends.
pub(super) fn serve_files(args: &ServeFilesArgs) -> u8 {
    if let Err(error) = agentd_host::signals::survive_file_size_limit() {
        eprintln!("agentd: cannot ignore SIGXFSZ: {error}");
        return exit::FAILED;
    }
    if let Err(said) = super::folder(&args.root) {
        eprintln!("agentd: {said}");
        return exit::USAGE;
    }
    match crate::files::serve(&args.root, args.write, io::stdin().lock(), io::stdout().lock()) {
        Ok(()) => exit::COMPLETED,
        Err(error) => {
            eprintln!("agentd: serving {}: {error}", args.root.display());
            exit::FAILED
        }
    }
}
