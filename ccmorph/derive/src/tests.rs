//! What is refused, why, and where the error points.

use proc_macro2::TokenStream;
use syn::{Error, Result, parse_str};

use crate::{field_order, split};

/// What a macro makes of the arguments and the item.
type Expand = fn(&str, &str) -> Result<TokenStream>;

fn split_of(arguments: &str, item: &str) -> Result<TokenStream> {
    split::split(&parse_str(arguments)?, &parse_str(item)?)
}

fn order_of(arguments: &str, item: &str) -> Result<TokenStream> {
    field_order::field_order(&parse_str(arguments)?, &parse_str(item)?)
}

/// The text that the error points at, and a part of the message.
#[track_caller]
fn refused(expand: Expand, arguments: &str, item: &str, at: &str, message: &str) {
    let error: Error = expand(arguments, item).expect_err("refused");
    assert!(error.to_string().contains(message), "{error}");
    assert_eq!(error.span().source_text().as_deref(), Some(at));
}

#[test]
fn splits_that_make_no_sense_point_at_the_field() {
    let refused = |arguments, item, at, message| refused(split_of, arguments, item, at, message);
    let node = "struct Node { key: u64, name: String }";
    refused(
        "cold(nmae)",
        node,
        "nmae",
        "`Node` has no field of this name",
    );
    refused("cold(name, name)", node, "name", "named twice");
    refused("cold(key, name)", node, "Node", "all fields are cold");
    refused("cold(name), warm", node, "warm", "write `cold(FIELD, ..)`");
    refused(
        "cold(name), cold = \"heap\"",
        node,
        "\"heap\"",
        "\"box\" or a \"table\"",
    );
    refused("cold(0)", "struct Node(u64, u64);", "0", "expected ident");
    refused("cold(a)", "struct Node(u64, u64);", "Node", "named fields");
    refused(
        "cold(a)",
        "enum Node { A { a: u64 } }",
        "Node",
        "for structs",
    );
    let taken = "struct Node { cold: u64, name: String }";
    refused("cold(name)", taken, "cold", "rename the field");
    let link = "struct Node { key: u64, #[child] next: Option<Box<Node>> }";
    refused("cold(next)", link, "#[child]", "cannot be cold");
}

#[test]
fn derives_that_would_mean_something_else_are_pointed_at() {
    let refused = |arguments, item: &str, at, message| {
        let item = format!("{item} struct Node {{ name: String, key: u64, text: String }}");
        refused(split_of, arguments, &item, at, message);
    };
    refused(
        "cold(name, text)",
        "#[derive(Copy)]",
        "Copy",
        "cannot be copied",
    );
    refused(
        "cold(name, text)",
        "#[derive(Debug, PartialOrd)]",
        "PartialOrd",
        "between cold ones",
    );
    let table = "cold(name, text), cold = \"table\"";
    refused(
        table,
        "#[derive(Debug, Hash)]",
        "Hash",
        "number in the table",
    );
    refused("cold(name, text)", "#[repr(packed)]", "packed", "alignment");
    // Under a condition, too.
    let packed = "#[cfg_attr(all(), must_use, repr(C, packed))]";
    refused("cold(name, text)", packed, "packed", "alignment");
    let copied = "#[cfg_attr(all(), cfg_attr(all(), derive(Copy)))]";
    refused("cold(name, text)", copied, "Copy", "cannot be copied");
    // Where the cold fields stand together, the order stays.
    let ordered = "#[derive(PartialOrd)] struct Node { a: u8, name: String, b: u8 }";
    assert!(split_of("cold(name)", ordered).is_ok());
}

#[test]
fn orders_that_make_no_sense_point_at_the_field() {
    let refused = |arguments, item, at, message| refused(order_of, arguments, item, at, message);
    let node = "struct Node<T> { key: T }";
    refused("size = 8", node, "Node", "which type is measured");
    refused(
        "offsets(kye = 0)",
        node,
        "kye",
        "`Node` has no field of this name",
    );
    refused("align = 8", node, "align", "write `size = BYTES`");
    refused(
        "offsets(key = \"0\")",
        node,
        "\"0\"",
        "expected integer literal",
    );
    assert!(
        order_of("of = Node<u8>", node)
            .unwrap_err()
            .to_string()
            .contains("say what stays")
    );
}
