// The part of an application that exposes memory and reaches into that of others. Who may ask for what
// it learns from the oracle, as real processes learn keys from each other.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/engine.h"
#include "sim/application_world.h"
#include "sim/quarantine.h"
#include "sim/remote_oracle.h"

namespace cluster::sim {

class RemoteAccess {
 public:
  /// Exposes the regions of this life, if the plan has remote operations at all.
  RemoteAccess(const Surroundings& surroundings, Dice dice, Quarantine& quarantine);

  /// Orders a read or a write. False if there was no room for it, or nothing to ask for.
  bool order_something(HostNumber to);
  /// Closes a region, opens another.
  void change_regions();
  void complete(const protocol::Completion& completion);
  /// A peer's write with data has landed here.
  void note_landed(const protocol::Completion& completion);

  std::size_t under_way() const { return under_way_; }

 private:
  using Operation = RemoteOperation;
  struct Buffer {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t length = 0;
  };

  void expose();
  bool shape(Operation& operation, HostNumber to);
  bool shape_range(Operation& operation, Exposure& exposure);
  void shape_forbidden(Operation& operation, Exposure& exposure, protocol::RemoteRange& range);
  bool order(Operation shape, const std::vector<protocol::RemoteRange>& remote);
  Fault put(const Operation& operation, std::span<const protocol::RemoteRange> remote, Buffer& buffer);
  Fault get(const Operation& operation, std::span<const protocol::RemoteRange> remote, Buffer& buffer);
  template <typename Order>
  void fill(Order& order, const Operation& operation, std::span<const protocol::RemoteRange> remote);
  void read_back(MessageNumber number);

  Surroundings around_;
  Dice dice_;
  Quarantine& quarantine_;
  std::unordered_map<MessageNumber, Buffer> buffers_;
  std::size_t under_way_ = 0;
  std::uint64_t keys_ = 0;
};

}  // namespace cluster::sim
