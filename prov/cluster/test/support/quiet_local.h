// The shared-memory side of a fake node: an inbox that receives nothing and a host without connections. Tests
// derive from them and override what they test.
#pragma once

#include <memory>
#include <vector>

#include "shm/local_listener.h"

namespace cluster::test {

class QuietInbox : public shm::Inbox {
 public:
  explicit QuietInbox(const SocketAddress& peer, std::uint64_t epoch = 1) : peer_(peer), epoch_(epoch) {}
  const SocketAddress& peer() const override { return peer_; }
  std::uint64_t peer_epoch() const override { return epoch_; }
  bool peek(shm::PeekedSegment&) override { return false; }
  void pop() override {}
  bool broken() const override { return false; }
  carrier::CrossMemory* memory() override { return nullptr; }
  bool peer_gone() override { return false; }
  int process_descriptor() const override { return -1; }
  std::size_t footprint() const override { return 0; }
  bool request_doorbell() override { return false; }

 private:
  SocketAddress peer_;
  std::uint64_t epoch_;
};

class QuietListener : public shm::LocalListener {
 public:
  shm::Connection connect(const SocketAddress&) override { return {nullptr, "no such peer"}; }
  void accept(std::vector<std::unique_ptr<shm::Inbox>>&) override {}
  int descriptor() const override { return -1; }
  int doorbell() const override { return -1; }
  void clear_doorbell() override {}
  bool has_half_open() const override { return false; }
};

}  // namespace cluster::test
