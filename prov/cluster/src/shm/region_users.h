// The initiators that have the table of a domain: what each of them uses now, and whether it is alive. A close asks them;
// shm/region_layout.h says why that is enough.
//
// An initiator takes no descriptor, since the server closes its connection after the welcome. It says in its page when it has
// ended. Whether its process has ended is asked by the number of the process, when a close waits for it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "os/local_socket.h"
#include "os/peer_process.h"
#include "os/shared_memory.h"
#include "shm/region_layout.h"

namespace cluster::shm {

class RegionUsers {
 public:
  RegionUsers(Clock& clock, Log& log) : clock_(clock), log_(log) {}

  /// An initiator has come, through the server `via`. `welcome(socket)` is called once it is listed.
  /// The socket is taken only where nothing else here says when the initiator's process ends.
  template <typename Welcome>
  void add(os::LocalSocket& socket, os::SharedMemory page, const void* via, Welcome&& welcome) {
    const std::shared_ptr<User> user = list(socket, std::move(page), via);
    welcome(user->socket ? user->socket : socket);
  }
  /// True when no initiator uses the entry any more; the entry is not live. False after kUseMax.
  bool wait_until_unused(std::uint32_t entry);
  /// Initiators that came through this server may begin nothing more, and have ended all accesses when this returns.
  void revoke(const void* via);
  /// Forgets initiators that are gone.
  void forget_gone();

 private:
  struct User {
    os::PeerProcess process;
    os::SharedMemory memory;
    const void* via;
    os::LocalSocket socket;  ///< where nothing else here says when the process ends
    bool kept = false;       ///< it was revoked, and did not come to an end

    bool gone() const;  ///< (system calls)
    UsePage& page() const { return *reinterpret_cast<UsePage*>(memory.bytes().data()); }
    std::uint32_t used() const { return std::atomic_ref(page().entry).load(std::memory_order_acquire); }
  };
  /// Takes the socket if it is needed.
  std::shared_ptr<User> list(os::LocalSocket& socket, os::SharedMemory page, const void* via);
  template <typename Wanted>
  std::shared_ptr<User> find(Wanted&& wanted);
  template <typename Busy>
  bool wait_while(const User& user, Busy&& busy);

  Clock& clock_;
  Log& log_;
  std::mutex mutex_;  ///< held for moments only: the progress thread takes it
  std::vector<std::shared_ptr<User>> users_;
};

}  // namespace cluster::shm
