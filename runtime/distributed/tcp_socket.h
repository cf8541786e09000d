// TCP sockets that do not block: each wait ends at a deadline.
#pragma once

#include <string>
#include <string_view>

#include "runtime/core/descriptor.h"
#include "runtime/core/result.h"
#include "runtime/distributed/deadline.h"

namespace tilewright::distributed {

// The text of an error number, as "connection refused".
std::string system_error_text(int number);

// Milliseconds until the deadline, as poll() takes them: rounded up, at least 0.
int milliseconds_until(Deadline deadline);

// Waits until poll() reports one of the events, or an error or the end of the connection. Errors: kIo at the
// deadline.
Status wait_until_ready(const Descriptor& socket, short events, Deadline deadline);

// host: a name, or an address of IPv4 or IPv6 without brackets. Tries the addresses of a name in turn. Errors: kIo.
Result<Descriptor> connect_to(const std::string& host, int port, Deadline deadline);

// A socket that accepts connections. address: of IPv4 or IPv6; port 0: any that is free. Errors: kInvalid for
// something that is no address, kIo where the port cannot be had.
Result<Descriptor> listen_on(const std::string& address, int port);
// The port that a socket is bound to. Errors: kIo.
Result<int> port_of(const Descriptor& socket);

// The address, in digits, of this host's end of a socket. Errors: kIo.
Result<std::string> address_of(const Descriptor& socket);

// Sends all bytes. Errors: kIo at the deadline, or when the peer has closed the connection.
Status send_all(const Descriptor& socket, std::string_view bytes, Deadline deadline);
// Waits for bytes, and appends what is there, at most some 64 KiB. Returns false at the end of the connection, be it
// in order or not. Errors: kIo at the deadline.
Result<bool> receive_some(const Descriptor& socket, std::string& bytes, Deadline deadline);

}  // namespace tilewright::distributed
