// Accepts and opens the shared-memory connections of one endpoint, and checks the peers.
//
// A connection is good for nothing until its hello has come; until then it counts among the half-open
// ones, whose number is bounded: beyond the bound connections wait in the kernel's queue. No timer is
// needed: a process sends its hello right behind connecting, or it dies and its end of file comes.
//
// A peer whose connection waits in that queue believes that its messages arrive. Where this process has no free
// descriptor to accept it, a spare one is given up for as long as it takes to close the connection: then the peer
// learns that they do not.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "os/doorbell.h"
#include "os/local_socket.h"
#include "shm/layout.h"
#include "shm/local_listener.h"

namespace cluster::shm {

class RingListener final : public LocalListener {
 public:
  RingListener(const SocketAddress& name, std::uint64_t epoch, const Geometry& geometry, bool single_copy,
               os::LocalSocket listener, std::shared_ptr<os::Doorbell> doorbell, const Environment& environment);

  Connection connect(const SocketAddress& peer) override;
  void accept(std::vector<std::unique_ptr<Inbox>>& inboxes) override;
  int descriptor() const override { return listener_.descriptor(); }
  int doorbell() const override { return doorbell_->descriptor(); }
  void clear_doorbell() override { doorbell_->clear(); }
  bool has_half_open() const override { return !half_open_.empty(); }

 private:
  void accept_connections();
  bool refuse_one();
  void refuse_exhausted(const os::LocalSocket& socket);
  std::unique_ptr<Inbox> attach(os::LocalSocket& socket, bool& waiting);
  void refuse(const std::string& peer, const std::string& reason);

  SocketAddress name_;
  std::uint64_t epoch_;
  Geometry geometry_;
  bool single_copy_;
  /// The secret that peers must see in this process's memory; its address never changes.
  std::unique_ptr<const std::uint64_t> proof_;
  os::LocalSocket listener_;
  std::shared_ptr<os::Doorbell> doorbell_;  ///< rings from rings that may outlive this
  Environment environment_;
  std::vector<os::LocalSocket> half_open_;
  os::Descriptor spare_ = os::Descriptor::spare();
  Time next_refusal_{};  ///< when one is said again: any process of the node can cause as many as it likes
  bool accept_failed_ = false;
  bool exhaustion_logged_ = false;
};

}  // namespace cluster::shm
