//! Which program a keeper runs, and with what environment (S3.3); why it cannot, in words.
//!
//! Owns the lookup in `PATH`, so that a failure names what was looked for and where. Refuses names and values that
//! exec cannot carry. Called by [`super`] once a run.

use super::message::KeeperSpec;
use crate::environment;
use agentd_core::wire::message::{Files, Stdio, Transport};
use rustix::fs::Access;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where programs are looked for when nothing says so.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The command of a spec, ready to be started.
///
/// # Errors
/// One sentence: the program, the folder or a value that cannot be used, and what to do.
pub(super) fn command(spec: &KeeperSpec) -> Result<Command, String> {
    match &spec.transport {
        Transport::Stdio(stdio) => stdio_command(stdio),
        Transport::Files(files) => Ok(files_command(files)),
        Transport::Http(_) => Err("a server at an address has no program to keep".to_owned()),
    }
}

/// Why the kernel did not start `command`.
pub(super) fn explain(command: &Command, error: &io::Error) -> String {
    let program = command.get_program().to_string_lossy();
    match error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
        Some(rustix::io::Errno::NOENT) => {
            format!("cannot run {program}: the interpreter its first line names, or its loader, is not there")
        }
        Some(rustix::io::Errno::NOEXEC) => {
            format!("cannot run {program}: it is no program for this machine, and has no #! line")
        }
        Some(rustix::io::Errno::TOOBIG) => {
            format!(
                "cannot run {program}: its arguments and variables are longer than the kernel takes; shorten args or env"
            )
        }
        _ => format!("cannot run {program}: {error}"),
    }
}

/// Our own file server needs no environment but its marker: the binary may be an embedding program's, whose arguments
/// mean something else.
fn files_command(files: &Files) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("agentd").args(["mcp", "serve-files", "--root"]).arg(&files.root);
    command.env_clear().env(environment::FILES, "1");
    if files.write {
        command.arg("--write");
    }
    command
}

fn stdio_command(stdio: &Stdio) -> Result<Command, String> {
    check_values(stdio)?;
    let folder = match &stdio.cwd {
        Some(cwd) => PathBuf::from(cwd),
        None => {
            std::env::current_dir().map_err(|e| format!("the working directory is gone: {e}; set `cwd`"))?
        }
    };
    if !folder.is_dir() {
        return Err(format!(
            "its working directory {} is not a folder that can be entered; correct `cwd`",
            folder.display()
        ));
    }
    let search = stdio.env.get("PATH").map(OsString::from).or_else(|| std::env::var_os("PATH"));
    let program = find(&stdio.command, search, &folder)?;
    let mut command = Command::new(program);
    command.arg0(&stdio.command).args(&stdio.args).current_dir(folder);
    command.env_clear().envs(environment::baseline()).envs(&stdio.env);
    Ok(command)
}

fn check_values(stdio: &Stdio) -> Result<(), String> {
    if stdio.command.is_empty() {
        return Err("its `command` is empty; give a program's name or path".to_owned());
    }
    let texts =
        std::iter::once(&stdio.command).chain(&stdio.args).chain(stdio.env.values()).chain(&stdio.cwd);
    if texts.chain(stdio.env.keys()).any(|text| text.contains('\0')) {
        return Err(
            "its command, args, env or cwd hold a NUL character, which no program can be given".to_owned()
        );
    }
    match stdio.env.keys().find(|name| name.is_empty() || name.contains('=')) {
        Some(name) => {
            Err(format!("its `env` names the variable {name:?}; a name is not empty and has no `=`"))
        }
        None => Ok(()),
    }
}

/// The file to run: a path as it is, a name by `search` (a `PATH`), both as seen from `folder`.
pub(crate) fn find(command: &str, search: Option<OsString>, folder: &Path) -> Result<PathBuf, String> {
    if command.contains('/') {
        let path = folder.join(command);
        return match look(&path) {
            Look::Runnable => Ok(path),
            Look::Missing => Err(format!("there is no program {}; correct `command`", path.display())),
            Look::NotRunnable(why) => Err(format!("{} {why}", path.display())),
        };
    }
    let search = search.unwrap_or_else(|| DEFAULT_PATH.into());
    let mut near_miss = None;
    for entry in std::env::split_paths(&search) {
        let path = folder.join(entry).join(command);
        match look(&path) {
            Look::Runnable => return Ok(path),
            Look::Missing => {}
            Look::NotRunnable(why) => near_miss = near_miss.or(Some(format!("; {} {why}", path.display()))),
        }
    }
    Err(format!(
        "there is no program {command} in PATH ({}){}; install it, or give its whole path as `command`",
        search.to_string_lossy(),
        near_miss.unwrap_or_default()
    ))
}

enum Look {
    Runnable,
    Missing,
    /// Reads after the path.
    NotRunnable(&'static str),
}

fn look(path: &Path) -> Look {
    match path.metadata() {
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
            Look::NotRunnable("cannot be reached: permission denied")
        }
        Err(_) => Look::Missing,
        Ok(found) if !found.is_file() => Look::NotRunnable("is not a file"),
        Ok(_) if rustix::fs::access(path, Access::EXEC_OK).is_err() => {
            Look::NotRunnable("is not executable (chmod +x)")
        }
        Ok(_) => Look::Runnable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn stdio(command: &str) -> Stdio {
        Stdio { command: command.to_owned(), args: Vec::new(), env: Default::default(), cwd: None }
    }

    #[test]
    fn a_missing_program_is_named_with_where_it_was_looked_for() {
        let mut wanted = stdio("no-such-program");
        wanted.env.insert("PATH".into(), "/nowhere:/usr/bin".into());
        let error = stdio_command(&wanted).expect_err("there is none");
        assert!(error.contains("no-such-program in PATH (/nowhere:/usr/bin)"), "{error}");
        let error = stdio_command(&stdio("/nowhere/x")).expect_err("there is none");
        assert!(error.contains("no program /nowhere/x"), "{error}");
    }

    #[test]
    fn a_file_that_cannot_run_is_not_taken_for_missing() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("tool"), "x").expect("written");
        let mut wanted = stdio("tool");
        wanted.env.insert("PATH".into(), folder.path().display().to_string());
        let error = stdio_command(&wanted).expect_err("not executable");
        assert!(error.contains("tool is not executable"), "{error}");
        let error = stdio_command(&stdio("/tmp")).expect_err("a folder");
        assert!(error.contains("/tmp is not a file"), "{error}");
    }

    #[test]
    fn relative_names_are_seen_from_the_servers_own_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let tool = folder.path().join("tool");
        std::fs::write(&tool, "#!/no/such/interpreter\n").expect("written");
        std::fs::set_permissions(&tool, PermissionsExt::from_mode(0o755)).expect("made executable");
        for (command, path) in [("./tool", None), ("tool", Some("."))] {
            let mut wanted = stdio(command);
            wanted.cwd = Some(folder.path().display().to_string());
            wanted.env.extend(path.map(|p| ("PATH".to_owned(), p.to_owned())));
            let mut found = stdio_command(&wanted).expect("found");
            let error = found.spawn().expect_err("its interpreter is missing");
            assert!(explain(&found, &error).contains("interpreter"), "{error}");
        }
    }

    #[test]
    fn values_that_exec_cannot_carry_are_told() {
        let mut wanted = stdio("cat");
        wanted.args = vec!["a\0b".into()];
        assert!(stdio_command(&wanted).expect_err("a NUL").contains("NUL"));
        for name in ["", "A=B"] {
            let mut wanted = stdio("cat");
            wanted.env.insert(name.into(), "x".into());
            assert!(stdio_command(&wanted).expect_err("a bad name").contains("env"), "{name}");
        }
        let mut wanted = stdio("cat");
        wanted.cwd = Some("/no/such/folder".into());
        assert!(stdio_command(&wanted).expect_err("no folder").contains("/no/such/folder"));
        assert!(stdio_command(&stdio("")).is_err());
    }

    #[test]
    fn a_server_gets_the_baseline_and_its_own_variables_and_no_marker() {
        let mut wanted = stdio("cat");
        wanted.env.insert("TOKEN".into(), "own".into());
        let command = stdio_command(&wanted).expect("cat is there");
        let names: Vec<_> = command.get_envs().filter_map(|(k, v)| v.map(|_| k.to_owned())).collect();
        assert!(names.iter().any(|n| n == "TOKEN"));
        assert!(names.iter().all(|n| n == "TOKEN" || environment::is_baseline(n)), "{names:?}");
    }
}
