// A store in memory for processes of one machine, or of a few: what they need of etcd, without an etcd.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "runtime/core/descriptor.h"
#include "runtime/core/result.h"

namespace tilewright::distributed {

// What clients, friendly or not, may take of a server.
struct ServerLimits {
  size_t connections = 512;  // beyond them, that which has been idle the longest is closed
  // For a request to come whole and its answer to be taken; a connection that was idle for so long is closed.
  std::chrono::milliseconds idle = std::chrono::seconds(60);
  size_t bytes =
      64 << 20;  // held for all connections; beyond them, that which holds most is closed
};

// Serves etcd's JSON gateway as far as Store uses it (etcd_service.h), from a thread of its own, until it is destroyed;
// keys and leases end with it. Any bytes may come: messages, connections and what all of them hold are bounded, and a
// connection that is in the way is closed.
class StoreServer {
 public:
  // address: of IPv4 or IPv6, to listen at; port 0: any that is free. Errors: kInvalid for what is no address, kIo.
  static Result<std::unique_ptr<StoreServer>> start(const std::string& address, int port,
                                                    const ServerLimits& limits = {});
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  int port() const { return port_; }
  // "etcd://127.0.0.1:PORT", as connect_store (store.h) takes it; of the address that it listens at.
  std::string url() const;

 private:
  StoreServer(std::string address, int port, Descriptor wake);

  const std::string address_;
  const int port_;
  const Descriptor wake_;  // an eventfd that ends the thread
  std::thread thread_;
};

}  // namespace tilewright::distributed
