//! What the command line says about itself: completion scripts and the manual page. Made from the same declaration as
//! the parser, so that neither can be behind it.

use super::Cli;
use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use std::io;

#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub(super) struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  agentd completions bash > ~/.local/share/bash-completion/completions/agentd
  agentd completions fish > ~/.config/fish/completions/agentd.fish
  agentd completions zsh > ~/.zfunc/_agentd          with ~/.zfunc in fpath";

/// The script that completes `agentd` in a shell.
pub(super) fn completions(args: &CompletionsArgs) -> String {
    script(args.shell)
}

fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "agentd", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// The manual page: one for all commands, each with its options.
pub(super) fn manual() -> String {
    let mut page = Vec::new();
    let mut command = Cli::command();
    command.build();
    // A vector takes everything.
    let _written = write_page(&command, &mut page);
    String::from_utf8_lossy(&page).into_owned()
}

fn write_page(command: &Command, page: &mut Vec<u8>) -> io::Result<()> {
    let man = Man::new(command.clone());
    man.render_title(page)?;
    man.render_name_section(page)?;
    man.render_synopsis_section(page)?;
    man.render_description_section(page)?;
    man.render_options_section(page)?;
    page.extend_from_slice(b".SH COMMANDS\n");
    for sub in command.get_subcommands() {
        write_command(sub, page)?;
    }
    man.render_extra_section(page)?;
    man.render_version_section(page)
}

/// One command and those below it, as subsections.
fn write_command(command: &Command, page: &mut Vec<u8>) -> io::Result<()> {
    // `help` explains itself.
    if command.get_name() == "help" {
        return Ok(());
    }
    let name = command.get_bin_name().unwrap_or(command.get_name());
    page.extend_from_slice(format!(".SS \"{name}\"\n").as_bytes());
    let man = Man::new(command.clone());
    for render in [Man::render_synopsis_section, Man::render_description_section, Man::render_options_section]
    {
        let mut section = Vec::new();
        render(&man, &mut section)?;
        page.extend_from_slice(b".PP\n");
        page.extend_from_slice(&without_heading(&section));
    }
    for sub in command.get_subcommands() {
        write_command(sub, page)?;
    }
    Ok(())
}

/// A section's lines but for its heading: here it is part of a subsection.
fn without_heading(section: &[u8]) -> Vec<u8> {
    let lines = section.split_inclusive(|byte| *byte == b'\n');
    lines.filter(|line| !line.starts_with(b".SH")).flatten().copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    /// Every subcommand by its words, and every long flag of each.
    fn all(command: &Command, words: &str, found: &mut Vec<(String, Vec<String>)>) {
        for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
            let words = format!("{words} {}", sub.get_name());
            let flags = sub.get_arguments().filter_map(|arg| arg.get_long().map(str::to_owned));
            found.push((words.clone(), flags.collect()));
            all(sub, &words, found);
        }
    }

    fn commands() -> Vec<(String, Vec<String>)> {
        let mut command = Cli::command();
        command.build();
        let mut found = Vec::new();
        all(&command, "agentd", &mut found);
        assert!(found.len() >= 8, "{found:?}");
        found
    }

    #[test]
    fn the_manual_has_every_command_and_flag() {
        let page = manual();
        for (words, flags) in commands() {
            let heading = format!(".SS \"{words}\"\n");
            let (_, section) =
                page.split_once(&heading).unwrap_or_else(|| panic!("{words} is missing:\n{page}"));
            let section = section.split("\n.SS ").next().unwrap_or_default();
            for flag in flags {
                let escaped = flag.replace('-', "\\-");
                assert!(section.contains(&format!("\\-\\-{escaped}")), "{words} --{flag}: {section}");
            }
        }
        assert!(page.contains(".TH") && page.contains("Exit codes"), "{page}");
    }

    #[test]
    fn each_shell_completes_every_command_and_flag() {
        for shell in Shell::value_variants() {
            let script = script(*shell);
            for (words, flags) in commands() {
                let name = words.rsplit(' ').next().unwrap_or_default();
                assert!(script.contains(name), "{shell}: {words}");
                for flag in flags {
                    assert!(script.contains(&flag), "{shell}: {words} --{flag}");
                }
            }
        }
    }
}
