//! sBPF side: a program without any Solana crate. Instruction data: seed u64, mode u8,
//! iterations u32. Sets the hash as return data.

use std::alloc::{GlobalAlloc, Layout};

const HEAP_START: usize = 0x3_0000_0000;
const HEAP_BYTES: usize = 256 * 1024;
/// Without accounts: their number (u64), then the length of the data (u64), then the data.
const DATA_AT: usize = 16;
const DATA_BYTES: usize = 13;

extern "C" {
    fn sol_log_(text: *const u8, length: u64);
    fn sol_memcmp_(left: *const u8, right: *const u8, length: u64, result: *mut i32);
    fn sol_set_return_data(data: *const u8, length: u64);
}

struct Bump;

#[global_allocator]
static ALLOCATOR: Bump = Bump;

unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let position = HEAP_START as *mut usize;
        let top = match *position {
            0 => HEAP_START + HEAP_BYTES,
            used => used,
        };
        let start = top.saturating_sub(layout.size()) & !(layout.align() - 1);
        if start < HEAP_START + 8 {
            return core::ptr::null_mut();
        }
        *position = start;
        start as *mut u8
    }

    unsafe fn dealloc(&self, _pointer: *mut u8, _layout: Layout) {}
}

/// # Safety
/// As C's `memcmp`.
#[no_mangle]
pub unsafe extern "C" fn memcmp(left: *const u8, right: *const u8, length: usize) -> i32 {
    let mut result = 0;
    sol_memcmp_(left, right, length as u64, &mut result);
    result
}

/// # Safety
/// As `memcmp`.
#[no_mangle]
pub unsafe extern "C" fn bcmp(left: *const u8, right: *const u8, length: usize) -> i32 {
    memcmp(left, right, length)
}

#[no_mangle]
pub fn custom_panic(info: &core::panic::PanicInfo<'_>) {
    let text = format!("{info}");
    unsafe { sol_log_(text.as_ptr(), text.len() as u64) }
}

/// # Safety
/// Called by the runtime with its serialised input.
#[no_mangle]
pub unsafe extern "C" fn entrypoint(input: *const u8) -> u64 {
    let data = std::slice::from_raw_parts(input.add(DATA_AT), DATA_BYTES);
    let seed = u64::from_le_bytes(data[..8].try_into().expect("8 bytes"));
    let iterations = u32::from_le_bytes(data[9..].try_into().expect("4 bytes"));
    let hash = crate::cases::run(seed, data[8], iterations).to_le_bytes();
    sol_set_return_data(hash.as_ptr(), hash.len() as u64);
    0
}
