// The engine `gloo`: TCP connections among all ranks, which find one another in the store.
#include <gloo/allreduce.h>
#include <gloo/config.h>
#include <gloo/context.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>
#include <sched.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <thread>

#include "runtime/distributed/collectives.h"
#include "runtime/distributed/transport.h"

namespace tilewright::distributed {

namespace {

// Gloo reports errors by exceptions, which end here.
template <typename F>
auto catch_gloo(F&& f) -> decltype(f()) {
  try {
    return f();
  } catch (const std::exception& e) { return io_error(std::string("gloo: ") + e.what()); }
}

std::chrono::milliseconds until(Deadline deadline) {
  using std::chrono::milliseconds;
  const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
  return std::max(left, milliseconds(1));  // 0 and less would be no limit
}

// Gives threads that are created in its scope the policy SCHED_BATCH. Gloo's device thread spins while another thread
// holds a connection's mutex. If it preempts the holder on wake-up, it burns a whole time slice; batch threads never
// preempt on wake-up. Threads inherit the policy of their creator.
class MakesBatchThreads {
 public:
  MakesBatchThreads() { set(SCHED_OTHER, SCHED_BATCH); }
  ~MakesBatchThreads() { set(SCHED_BATCH, SCHED_OTHER); }

 private:
  static void set(int from, int to) {
    const sched_param none{};
    if (sched_getscheduler(0) == from) sched_setscheduler(0, to, &none);
  }
};

class GlooStore final : public gloo::rendezvous::Store {
 public:
  GlooStore(distributed::Store& store, std::string prefix, Deadline deadline)
      : store_(store), prefix_(std::move(prefix)), deadline_(deadline) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    check(store_.set(prefix_ + key, std::string(data.begin(), data.end())));
  }
  std::vector<char> get(const std::string& key) override {
    const auto value = wait_for_key(store_, prefix_ + key, deadline_);
    if (!value.ok()) throw std::runtime_error(value.error().to_string());
    return {value->begin(), value->end()};
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) get(key);
  }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override {
    wait(keys);
  }

 private:
  static void check(const Status& status) {
    if (!status.ok()) throw std::runtime_error(status.error().to_string());
  }
  distributed::Store& store_;
  const std::string prefix_;
  const Deadline deadline_;
};

class GlooTransfer final : public Transfer {
 public:
  GlooTransfer(std::unique_ptr<gloo::transport::UnboundBuffer> buffer, bool receives)
      : buffer_(std::move(buffer)), receives_(receives) {}
  Result<int> wait(Deadline deadline) override {
    return catch_gloo([&]() -> Result<int> {
      int rank = -1;
      const bool done = receives_ ? buffer_->waitRecv(&rank, until(deadline))
                                  : buffer_->waitSend(&rank, until(deadline));
      if (!done) return io_error("gloo: the message was given up");
      return rank;
    });
  }
  gloo::transport::UnboundBuffer& buffer() { return *buffer_; }

 private:
  const std::unique_ptr<gloo::transport::UnboundBuffer> buffer_;
  const bool receives_;
};

// Extracts interface and address from Gloo's description of a device: "lo (127.0.0.1)" from "tcp, pci=, iface=lo,
// speed=-1, addr=[127.0.0.1]". Returns descriptions of another form unchanged.
std::string interface_of(const std::string& device) {
  const auto between = [&](const std::string& from, const std::string& to) -> std::string {
    const size_t at = device.find(from), begin = at + from.size();
    const size_t end = at == std::string::npos ? at : device.find(to, begin);
    return end == std::string::npos ? "" : device.substr(begin, end - begin);
  };
  const std::string name = between("iface=", ","), address = between("addr=[", "]");
  return name.empty() ? device : name + " (" + address + ")";
}

// Gloo's own collectives number their messages otherwise: their topmost byte is small.
uint64_t slot_of(uint64_t tag) { return tag | uint64_t{0xF0} << 56; }

class GlooTransport final : public Transport {
 public:
  GlooTransport(std::shared_ptr<gloo::rendezvous::Context> context, std::string interface,
                const ConnectOptions& options)
      : context_(std::move(context)),
        interface_(std::move(interface)),
        store_(*options.store),
        prefix_(options.prefix) {}
  ~GlooTransport() override { abort(); }
  int rank() const override { return context_->rank; }
  int size() const override { return context_->size; }
  std::string describe() const override {
    return "gloo " + std::to_string(GLOO_VERSION_MAJOR) + "." + std::to_string(GLOO_VERSION_MINOR) +
           "." + std::to_string(GLOO_VERSION_PATCH) + ", " + interface_;
  }
  bool polls() const override { return false; }

  Result<std::unique_ptr<Transfer>> send(int to, uint64_t tag,
                                         std::span<const std::byte> data) override {
    return catch_gloo([&]() -> Result<std::unique_ptr<Transfer>> {
      auto t = transfer(const_cast<std::byte*>(data.data()), data.size(), false);
      t->buffer().send(to, slot_of(tag));
      return std::unique_ptr<Transfer>(std::move(t));
    });
  }
  Result<std::unique_ptr<Transfer>> receive(int from, uint64_t tag,
                                            std::span<std::byte> data) override {
    return catch_gloo([&]() -> Result<std::unique_ptr<Transfer>> {
      auto t = transfer(data.data(), data.size(), true);
      if (from != kAnyRank) {
        t->buffer().recv(from, slot_of(tag));
      } else {
        std::vector<int> others;
        for (int r = 0; r < size(); ++r)
          if (r != rank()) others.push_back(r);
        t->buffer().recv(others, slot_of(tag));
      }
      return std::unique_ptr<Transfer>(std::move(t));
    });
  }

  // The connections do not outlive a failure, so ranks tell their states in the store. Closing them tells a rank that
  // waits for this one, and not for the lost one, at once.
  std::vector<std::optional<std::string>> roll_call(const std::string& state,
                                                    Deadline deadline) override {
    abort();
    const std::string prefix = prefix_ + "failed/";
    std::vector<std::optional<std::string>> states(static_cast<size_t>(size()));
    states[static_cast<size_t>(rank())] = state;
    if (!store_.set(prefix + std::to_string(rank()), state).ok()) return states;
    for (;;) {
      if (const auto told = store_.list(prefix); told.ok())
        for (int r = 0; r < size(); ++r)
          if (const auto found = told->find(prefix + std::to_string(r)); found != told->end())
            states[static_cast<size_t>(r)] = found->second;
      const auto silent = std::count(states.begin(), states.end(), std::nullopt);
      if (silent == 0 || Clock::now() >= deadline) return states;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  void abort() override {
    try {
      if (context_) context_->closeConnections();
    } catch (const std::exception&) {  // closed by the failure
    }
  }

 private:
  std::unique_ptr<GlooTransfer> transfer(void* data, size_t bytes, bool receives) {
    return std::make_unique<GlooTransfer>(context_->createUnboundBuffer(data, bytes), receives);
  }
  const std::shared_ptr<gloo::rendezvous::Context> context_;
  const std::string interface_;
  distributed::Store& store_;
  const std::string prefix_;
};

class GlooEngine final : public Engine {
 public:
  Result<std::unique_ptr<Transport>> connect(const ConnectOptions& o) const override {
    // Gloo writes to connections that the other rank may have closed.
    std::signal(SIGPIPE, SIG_IGN);
    return catch_gloo([&]() -> Result<std::unique_ptr<Transport>> {
      gloo::transport::tcp::attr attributes;
      attributes.hostname = o.address.empty() ? "127.0.0.1" : o.address;
      const auto device = [&] {
        const MakesBatchThreads batch;
        return gloo::transport::tcp::CreateDevice(attributes);
      }();
      auto context = std::make_shared<gloo::rendezvous::Context>(o.rank, o.size);
      context->setTimeout(until(o.deadline));
      GlooStore store(*o.store, o.prefix, o.deadline);
      auto mesh_device = device;
      context->connectFullMesh(store, mesh_device);
      return std::unique_ptr<Transport>(
          std::make_unique<GlooTransport>(std::move(context), interface_of(device->str()), o));
    });
  }
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const Engine* tilewright_engine_1() {
  static const GlooEngine engine;
  return &engine;
}

}  // namespace tilewright::distributed
