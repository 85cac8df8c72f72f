// The door of one endpoint for the peers of its node: listens, connects, and checks who comes.
//
// A connection is worth nothing until its hello has come; until then it waits among the half-open ones,
// whose number is bounded: while they are too many, newcomers wait in the kernel's queue. There is no
// timer: a process sends its hello right behind connecting, or it is dead and its end-of-file comes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/environment.h"
#include "os/local_socket.h"
#include "shm/layout.h"
#include "shm/local_listener.h"

namespace cluster::shm {

class RingHost final : public LocalListener {
 public:
  RingHost(const SocketAddress& name, std::uint64_t epoch, const Geometry& geometry, bool single_copy,
           os::LocalSocket listener, const Environment& environment);

  /// What the listener of `name` is called.
  static std::string listener_name(const SocketAddress& name);

  Connection connect(const SocketAddress& peer) override;
  void accept(std::vector<std::unique_ptr<Inbox>>& arrivals) override;
  int descriptor() const override { return listener_.descriptor(); }
  bool has_half_open() const override { return !half_open_.empty(); }

 private:
  void admit_connections();
  std::unique_ptr<Inbox> attach(os::LocalSocket& socket, bool& waiting);
  void refuse(const std::string& who, const std::string& reason);

  SocketAddress name_;
  std::uint64_t epoch_;
  Geometry geometry_;
  bool single_copy_;
  std::unique_ptr<const std::uint64_t>
      proof_;  ///< what peers must see in our memory; its place never changes
  os::LocalSocket listener_;
  Environment environment_;
  std::vector<os::LocalSocket> half_open_;
  bool accept_failed_ = false;
};

}  // namespace cluster::shm
