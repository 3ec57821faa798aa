//! `System` allocator of std for Solana: none. Programs bring their own `#[global_allocator]`.

use crate::alloc::{GlobalAlloc, Layout, System};

#[stable(feature = "alloc_system_type", since = "1.28.0")]
unsafe impl GlobalAlloc for System {
    unsafe fn alloc(&self, _layout: Layout) -> *mut u8 {
        crate::ptr::null_mut()
    }
    unsafe fn dealloc(&self, _pointer: *mut u8, _layout: Layout) {}
}
