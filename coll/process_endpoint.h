// The library's endpoint in this process, separate from MPI's own endpoint. All communicators share it, and
// each has a collective team of the endpoint. Several threads may wait at once, each for its own operation. A
// thread that reads the completion of another thread's operation marks that operation as done.
#pragma once

#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "libfabric.h"

namespace coll {

/// The context of an operation. The waiting thread polls `done`.
struct Pending {
  std::atomic<bool> done{false};
  int error = 0;  ///< 0 or a libfabric error number; valid once `done` is true

  void end(int with) {
    error = with;
    done.store(true, std::memory_order_release);
  }
};

struct CloseFid {
  template <typename Object>
  void operator()(Object* object) const {
    fi_close(&object->fid);
  }
};
template <typename Object>
using Owned = std::unique_ptr<Object, CloseFid>;

using Name = std::vector<std::byte>;

/// A collective team. It must be destroyed before the endpoint is closed.
class Team {
 public:
  Team(Owned<fid_av_set> set, fid_mc* mc, std::vector<fi_addr_t> members)
      : set_(std::move(set)), mc_(mc), members_(std::move(members)) {}
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  fi_addr_t address() const { return fi_mc_addr(mc_); }
  fi_addr_t member(int rank) const { return members_[static_cast<std::size_t>(rank)]; }
  /// Returns the rank of a peer, or size() if the peer is not a member.
  int rank_of(fi_addr_t peer) const {
    return static_cast<int>(std::find(members_.begin(), members_.end(), peer) - members_.begin());
  }
  int size() const { return static_cast<int>(members_.size()); }

 private:
  Owned<fid_av_set> set_;
  fid_mc* mc_;
  std::vector<fi_addr_t> members_;
};

/// A lost peer and the cause.
struct Loss {
  fi_addr_t peer = FI_ADDR_NOTAVAIL;
  std::string cause;
};

class ProcessEndpoint {
 public:
  /// Returns the endpoint. The first call opens it. On failure, returns null and writes the cause to
  /// `reason`.
  static ProcessEndpoint* get(std::string& reason);
  /// Closes the endpoint, which first sends all outstanding messages. All teams must have been destroyed.
  static void close();

  fid_ep* ep() const { return ep_.get(); }
  const Name& name() const { return name_; }
  /// Creates a team of these peers, in this order, and waits until all have joined. All peers must call this
  /// function with the same key. Two teams of the same peers must have different keys. Calls `idle`
  /// repeatedly while it waits. Returns null on failure.
  template <typename Idle>
  std::unique_ptr<Team> join(const std::vector<Name>& names, std::uint64_t key, Idle&& idle);
  /// Returns a lost member of the team, and the cause of the loss. If this process has lost no member of the
  /// team, the cause is empty.
  Loss loss_among(const Team& team);
  const char* text_of(int error) const { return libfabric_.strerror(error); }
  /// Reads one completion, if there is one, and marks its operation as done, even if another thread waits for
  /// that operation.
  void progress();
  /// Like progress(), but if there is no completion, the thread first sleeps until one arrives. It sleeps for
  /// at most kSleepMs, because another thread may have read the completion that it waits for.
  void sleep();

 private:
  static constexpr int kSleepMs = 1;
  static constexpr std::size_t kLossesMax = 64;

  ProcessEndpoint() = default;
  bool open(std::string& reason);
  std::unique_ptr<Team> begin_join(const std::vector<Name>& names, std::uint64_t key, Pending& joined);
  /// Reads one event from the event queue and handles it. Returns false if there was none.
  bool read_event();
  void take(ssize_t got, const fi_cq_entry& entry);

  struct FreeInfo {
    Libfabric* libfabric;
    void operator()(fi_info* info) const { libfabric->freeinfo(info); }
  };

  Libfabric libfabric_;
  Owned<fid_fabric> fabric_;
  Owned<fid_domain> domain_;
  Owned<fid_av> av_;
  Owned<fid_cq> cq_;
  Owned<fid_eq> eq_;
  Owned<fid_ep> ep_;
  Name name_;
  std::mutex joining_;  ///< prevents two threads from changing the address vector at once
  std::mutex losing_;
  std::vector<Loss> losses_;  ///< the first kLossesMax losses
};

template <typename Idle>
std::unique_ptr<Team> ProcessEndpoint::join(const std::vector<Name>& names, std::uint64_t key, Idle&& idle) {
  Pending joined;
  std::unique_ptr<Team> team = begin_join(names, key, joined);
  while (team != nullptr && !joined.done.load(std::memory_order_acquire)) {
    read_event();
    progress();
    idle();
  }
  return joined.error == 0 ? std::move(team) : nullptr;
}

}  // namespace coll
