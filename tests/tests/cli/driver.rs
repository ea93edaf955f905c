//! `--driver`: a binary has the drivers it was built with, and says how to get the other.

use super::place::Place;
use std::fs;

#[test]
fn a_driver_that_is_not_in_the_binary_is_refused_with_the_way_to_get_it() {
    let said = Place::new().agentd(&["demo", ".", "--driver", "epoll"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("possible values: mio, tokio"), "{}", said.err);
    if cfg!(feature = "tokio") {
        return;
    }
    for command in ["demo", "run"] {
        let said = Place::new().agentd(&[command, ".", "--driver", "tokio"]);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
        assert!(said.err.contains("cargo build --release -p agentd --features tokio"), "{}", said.err);
    }
}

#[test]
fn a_demo_is_the_same_on_every_driver() {
    let place = Place::new();
    for (name, text) in [("a/one", "TODO\nx\nTODO\n"), ("b/two", "TODO\n")] {
        let path = place.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    let drivers = if cfg!(feature = "tokio") { vec!["mio", "tokio"] } else { vec!["mio"] };
    for driver in drivers {
        let said = place.agentd(&["demo", ".", "--driver", driver]);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(said.out.contains("TODO: mentioned on 3 of 4 lines"), "{}", said.out);
        assert!(said.out.ends_with("0 processes left\n"), "{}", said.out);
    }
}
