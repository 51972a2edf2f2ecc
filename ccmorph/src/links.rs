//! Types that show links to nodes of one type: boxes, collections, pointers back, and nodes.

use crate::link::Link;
use crate::macros::{collections, wrapper};
use crate::pointers::Pointers;
use crate::visit::{Links, Visit, Visitor};
use std::collections::{BTreeMap, HashMap, VecDeque};

impl<T> Links for Box<T> {
    type Link = Box<T>;

    #[inline]
    fn show<'a>(&'a mut self, visitor: &mut Visitor<'_, 'a, Box<T>>) {
        visitor.link(self);
    }
}

/// Boxes of one version of the `allocator-api2` crate.
macro_rules! boxes {
    ($feature:literal, $version:ident) => {
        #[cfg(feature = $feature)]
        impl<T, A> Links for $version::boxed::Box<T, A>
        where
            A: $version::alloc::Allocator + crate::link::Home,
        {
            type Link = Self;

            #[inline]
            fn show<'a>(&'a mut self, visitor: &mut Visitor<'_, 'a, Self>) {
                visitor.link(self);
            }
        }
    };
}

boxes!("allocator-api2", allocator_api2);
boxes!("allocator-api2-04", allocator_api2_04);

collections! {
    show(&mut Visitor<'_, 'a, L::Link>)
    [L: Links] Links, Option<L>: iter_mut {type Link = L::Link;};
    [L: Links] Links, [L]: iter_mut {type Link = L::Link;};
    [L: Links, const N: usize] Links, [L; N]: iter_mut {type Link = L::Link;};
    [L: Links] Links, Vec<L>: iter_mut {type Link = L::Link;};
    [L: Links] Links, Box<[L]>: iter_mut {type Link = L::Link;};
    [L: Links] Links, VecDeque<L>: iter_mut {type Link = L::Link;};
    [K, L: Links] Links, BTreeMap<K, L>: values_mut {type Link = L::Link;};
    [K, L: Links, S] Links, HashMap<K, L, S>: values_mut {type Link = L::Link;};
}

/// A node that can show its children; derived for structs and enums by
/// [`#[derive(TreeNode)]`](macro@crate::TreeNode).
/// By hand, call `visit` for each field that holds links.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not show its children",
    note = "`#[derive(ccmorph::TreeNode)]`, with `#[child]` on the fields that own nodes"
)]
pub trait TreeNode: Sized {
    /// What owns a child: `Box<Self>`, or another kind of box.
    type Link: Link<Node = Self>;

    /// Calls `visit` for the links to the children, in order, and for [pointers
    /// back](crate::back).
    fn children<'a>(&'a mut self, visit: &mut Visit<'_, 'a, Self::Link>);
}

wrapper! {
    /// Lets a traversal show [`Pointers`]; made by [`back`].
    Back;

    /// Shows pointers that own nothing: `visit(back(&mut node.up))`.
    /// [`#[derive(TreeNode)]`](macro@crate::TreeNode) does so for fields marked `#[parent]` or
    /// `#[pointer]`.
    back;
}

impl<P: ?Sized, L> Back<P, L> {
    pub(crate) fn pointers_mut(&mut self) -> &mut P {
        &mut self.shown
    }
}

impl<L: Link, P: Pointers<L::Node> + ?Sized> Links for Back<P, L> {
    type Link = L;

    #[inline]
    fn show<'a>(&'a mut self, visitor: &mut Visitor<'_, 'a, L>) {
        visitor.pointers(&mut self.shown);
    }
}
