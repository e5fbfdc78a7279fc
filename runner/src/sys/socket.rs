//! The control socket between supervisor and zygote: whole messages, with descriptors in them.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use super::check;

/// The most descriptors that one message carries.
pub const FDS_MAX: usize = 16;

const SPACE: usize = 128;

#[repr(C, align(8))]
struct Control([u8; SPACE]);

/// Two ends of a `SOCK_SEQPACKET` connection, close-on-exec.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [-1; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: socketpair(2) fills two numbers.
    check(unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, fds.as_mut_ptr()) })?;
    // SAFETY: the number was just returned by the kernel and belongs to nobody else.
    let first = unsafe { OwnedFd::from_raw_fd(fds[0]) };
    // SAFETY: the number was just returned by the kernel and belongs to nobody else.
    let second = unsafe { OwnedFd::from_raw_fd(fds[1]) };
    Ok((first, second))
}

fn fd_bytes(count: usize) -> u32 {
    u32::try_from(count * size_of::<RawFd>()).unwrap_or(0)
}

/// Sends one message with `fds` in it.
pub fn send(socket: BorrowedFd<'_>, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut control = Control([0; SPACE]);
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: all fields of msghdr are numbers and pointers, for which zeroes are a value.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    if !fds.is_empty() {
        if fds.len() > FDS_MAX {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        message.msg_control = control.0.as_mut_ptr().cast();
        // SAFETY: CMSG_SPACE is arithmetic.
        message.msg_controllen = unsafe { libc::CMSG_SPACE(fd_bytes(fds.len())) } as usize;
        // SAFETY: the message has a control buffer of at least one header.
        let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
        // SAFETY: CMSG_LEN is arithmetic.
        let length = unsafe { libc::CMSG_LEN(fd_bytes(fds.len())) } as usize;
        let head =
            libc::cmsghdr { cmsg_len: length, cmsg_level: libc::SOL_SOCKET, cmsg_type: libc::SCM_RIGHTS };
        // SAFETY: `header` points to the start of the aligned buffer, which is larger than a header.
        unsafe { header.write(head) };
        // SAFETY: the data of a header lie right behind it, within the buffer.
        let data = unsafe { libc::CMSG_DATA(header) }.cast::<RawFd>();
        for (i, fd) in fds.iter().enumerate() {
            // SAFETY: FDS_MAX numbers fit behind the header: 16 + 16 * 4 <= SPACE.
            let slot = unsafe { data.add(i) };
            // SAFETY: `slot` is within the buffer; the buffer's alignment is that of the header, a multiple of 4.
            unsafe { slot.write(fd.as_raw_fd()) };
        }
    }
    // SAFETY: sendmsg(2) reads the struct and what it points to, all alive here.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Receives one message of at most `buffer.len()` bytes; zero bytes mean that the other side is gone.
pub fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8], fds: &mut Vec<OwnedFd>) -> io::Result<usize> {
    let mut control = Control([0; SPACE]);
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: all fields of msghdr are numbers and pointers, for which zeroes are a value.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = SPACE;
    // SAFETY: recvmsg(2) fills the buffers that the struct points to, all exclusively borrowed here.
    let got = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) };
    let got = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: the kernel has filled the control buffer and its length.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    while !header.is_null() {
        // SAFETY: a header that CMSG_FIRSTHDR or CMSG_NXTHDR returns lies within the buffer.
        let head = unsafe { header.read() };
        if head.cmsg_level == libc::SOL_SOCKET && head.cmsg_type == libc::SCM_RIGHTS {
            // SAFETY: CMSG_LEN is arithmetic.
            let empty = unsafe { libc::CMSG_LEN(0) } as usize;
            // SAFETY: the data of a header lie right behind it, within the buffer.
            let data = unsafe { libc::CMSG_DATA(header) }.cast::<RawFd>();
            for i in 0..head.cmsg_len.saturating_sub(empty) / size_of::<RawFd>() {
                // SAFETY: the kernel wrote this many numbers behind the header.
                let slot = unsafe { data.add(i) };
                // SAFETY: as above; the buffer's alignment is that of the header, a multiple of 4.
                let fd = unsafe { slot.read() };
                // SAFETY: the kernel just installed this number in this process and nobody else owns it.
                fds.push(unsafe { OwnedFd::from_raw_fd(fd) });
            }
        }
        // SAFETY: both pointers come from the message that the kernel filled.
        header = unsafe { libc::CMSG_NXTHDR(&raw const message, header) };
    }
    if message.msg_flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(got)
}
