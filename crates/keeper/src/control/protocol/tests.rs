//! The protocol as it is documented.

use super::*;

#[test]
fn the_protocol_reads_as_documented() {
    let line = r#"{"protocol":1,"command":{"mount":{"name":"pgwal"}}}"#;
    let command = Command::Mount { name: "pgwal".into() };
    let request = Request { protocol: 1, command, configuration: None };
    assert_eq!(serde_json::from_str::<Request>(line).unwrap(), request);
    assert_eq!(serde_json::to_string(&request).unwrap(), line);
    let file = Some("/a.toml".to_owned());
    let of_a_file = Request { configuration: file, ..request };
    let line = r#"{"protocol":1,"command":{"mount":{"name":"pgwal"}},"configuration":"/a.toml"}"#;
    assert_eq!(serde_json::to_string(&of_a_file).unwrap(), line);
    let status = r#"{"protocol":1,"command":"status"}"#;
    assert_eq!(serde_json::from_str::<Request>(status).unwrap().command, Command::Status);
}
