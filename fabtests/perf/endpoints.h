// libfabric's objects of one side: one domain, one completion queue, and as many endpoints as pairs are
// measured. Any provider; only the public interface is used. Completions are counted, not looked up:
// a measure knows how many it waits for.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "control_connection.h"

namespace perf {

enum class Waiting { spin, yield, block };

struct Request {
  std::string provider;
  std::string node;  ///< own address; empty: what the provider offers first
  bool rma = false;
  bool atomic = false;
  fi_threading threading = FI_THREAD_DOMAIN;
  Waiting waiting = Waiting::spin;
  unsigned pairs = 1;
  std::size_t memory = 0;  ///< bytes of each of the two buffers
  bool shared = false;     ///< they lie in a mapping that other processes can map, too
};

/// The provider does not offer what the plan needs.
struct NotOffered : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct CloseFid {
  template <typename Object>
  void operator()(Object* object) const {
    fi_close(&object->fid);
  }
};
template <typename Object>
using Owned = std::unique_ptr<Object, CloseFid>;

/// Whole pages, touched, and registered when the provider wants that. Private, as a heap is, or, for providers
/// that make use of it, a shared mapping of a file in memory.
class Memory {
 public:
  Memory(std::size_t size, bool shared);
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();
  void register_with(fid_domain* domain, std::uint64_t key, bool virtual_addresses);

  char* data() const { return data_; }
  std::size_t size() const { return size_; }
  void* descriptor() const { return descriptor_; }
  /// What the other side needs to reach it.
  struct Handle {
    std::uint64_t address, key;
  };
  Handle handle() const { return handle_; }

 private:
  char* data_;
  std::size_t size_;
  int file_ = -1;  ///< stays open: some providers find it there
  Owned<fid_mr> region_;
  void* descriptor_ = nullptr;
  Handle handle_{};
};

class Endpoints {
 public:
  Endpoints(const Request& request, ControlConnection& line);

  const fi_info& info() const { return *info_; }
  fid_ep* ep(unsigned pair) const { return eps_[pair].get(); }
  fi_addr_t peer(unsigned pair) const { return peers_[pair]; }
  unsigned pairs() const { return static_cast<unsigned>(eps_.size()); }
  Memory& out() { return out_; }  ///< what is sent, and what peers read
  Memory& in() { return in_; }    ///< what is received, and what peers write
  Memory::Handle remote_out() const { return remote_out_; }
  Memory::Handle remote_in() const { return remote_in_; }

  /// One look at the completion queue.
  void progress();
  /// Repeats a post until it is accepted.
  template <typename Post>
  void post(Post&& attempt) {
    for (ssize_t result = attempt(); result != 0; result = attempt()) {
      if (result != -FI_EAGAIN) fail("post", static_cast<int>(result));
      progress();
    }
  }
  void await_sent(std::uint64_t count);      ///< so many more sends, reads, writes than awaited so far
  void await_received(std::uint64_t count);  ///< so many more receives
  /// A context for the next operation: libfabric may keep its own notes there while it is under way.
  fi_context2* context() { return &contexts_[next_context_++ % contexts_.size()]; }

  [[noreturn]] static void fail(const char* what, int error);

 private:
  void open(const Request& request);
  void introduce(ControlConnection& line);
  void read_queue(bool wait);
  void count(const fi_cq_tagged_entry& entry);
  void block_briefly();

  struct FreeInfo {
    void operator()(fi_info* info) const { fi_freeinfo(info); }
  };
  std::unique_ptr<fi_info, FreeInfo> info_;
  Owned<fid_fabric> fabric_;
  Owned<fid_domain> domain_;
  Memory out_, in_;
  Owned<fid_cq> queue_;
  Owned<fid_av> av_;
  std::vector<Owned<fid_ep>> eps_;
  std::vector<fi_addr_t> peers_;
  Memory::Handle remote_out_{}, remote_in_{};
  std::vector<fi_context2> contexts_;
  std::size_t next_context_ = 0;
  std::uint64_t sent_ = 0, received_ = 0;
  std::uint64_t awaited_sent_ = 0, awaited_received_ = 0;
  Waiting waiting_;
};

}  // namespace perf
