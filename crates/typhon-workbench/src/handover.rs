//! Handing the token to a browser (brief 11 F-3).
//!
//! Command lines are visible to every user of a machine, so a browser is not started with the address itself, but with
//! a file that only this user can read and that forwards to it.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::NamedTempFile;

/// A page on disk that forwards to an address. It is removed with this value.
pub(crate) fn forwarding_page(url: &str, folder: Option<&Path>) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("typhon-ui-").suffix(".html");
    // Readable by its owner only, which is how such files are made on Unix; elsewhere the folder is the user's own.
    let folder = folder.filter(|folder| std::fs::create_dir_all(folder).is_ok());
    let mut file = match folder {
        Some(folder) => builder.tempfile_in(folder)?,
        None => builder.tempfile()?,
    };
    file.write_all(page(url).as_bytes())?;
    file.flush()?;
    Ok(file)
}

fn page(url: &str) -> String {
    let url = escape(url);
    format!(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta http-equiv=\"refresh\" content=\"0;url={url}\">\n<title>Typhon Workbench</title>\n\
         <p>The Workbench is at <a href=\"{url}\">this address</a>.</p>\n"
    )
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Opens a file in the browser: `TYPHON_BROWSER`, a program with arguments, else the system's own.
pub(crate) fn open(file: &Path, browser: Option<OsString>) -> io::Result<()> {
    let mut command = match browser.filter(|browser| !browser.is_empty()) {
        Some(browser) => of_user(&browser),
        None => of_system(),
    };
    command.arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    // Somebody has to take note of its end.
    std::thread::Builder::new().name("browser".to_owned()).spawn(move || child.wait())?;
    Ok(())
}

/// A path that exists is a program, whatever is in it; anything else is split at spaces.
fn of_user(browser: &OsString) -> Command {
    let Some(text) = browser.to_str().filter(|_| !Path::new(browser).exists()) else {
        return Command::new(browser);
    };
    let mut words = text.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or(text));
    command.args(words);
    command
}

fn of_system() -> Command {
    if cfg!(windows) {
        Command::new("explorer")
    } else if cfg!(target_os = "macos") {
        Command::new("open")
    } else {
        Command::new("xdg-open")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_for_its_owner_only_and_holds_the_address() {
        let folder = tempfile::tempdir().unwrap();
        let page =
            forwarding_page("http://127.0.0.1:1/#token=ab&f=\"><script>", Some(&folder.path().join("new")))
                .unwrap();
        let text = std::fs::read_to_string(page.path()).unwrap();
        assert!(text.contains("url=http://127.0.0.1:1/#token=ab&amp;f=&quot;&gt;&lt;script&gt;\""), "{text}");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(page.path().metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
        let path = page.path().to_owned();
        drop(page);
        assert!(!path.exists());
    }
}
