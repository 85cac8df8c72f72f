// The part of an application that exposes memory, and reads and writes the memory of others. It learns keys
// and addresses from the oracle; real processes learn them from each other.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/engine.h"
#include "sim/application_environment.h"
#include "sim/quarantine.h"
#include "sim/rma_oracle.h"

namespace cluster::sim {

class RmaInitiator {
 public:
  /// Exposes the regions of this incarnation, if the plan contains remote operations.
  RmaInitiator(const ApplicationEnvironment& environment, SeededRandom random, Quarantine& quarantine);

  /// Starts a read or a write. Returns false if the engine has no space for it, or if the peer has
  /// registered nothing.
  bool start_operation(HostNumber to);
  /// Closes a region and opens another.
  void replace_region();
  void complete(const protocol::Completion& completion);
  /// A completion has brought the data of a peer's write.
  void remote_write_arrived(const protocol::Completion& completion);

  std::size_t under_way() const { return under_way_; }

 private:
  using Operation = RmaOperation;
  struct Buffer {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t length = 0;
  };

  void register_region();
  bool shape(Operation& operation, HostNumber to);
  bool draw_range(Operation& operation, WatchedRegion& region_watch);
  void draw_forbidden(Operation& operation, WatchedRegion& region_watch, protocol::RmaIov& range);
  bool order(Operation shape, const std::vector<protocol::RmaIov>& remote);
  Status write(const Operation& operation, std::span<const protocol::RmaIov> remote, Buffer& buffer);
  Status read(const Operation& operation, std::span<const protocol::RmaIov> remote, Buffer& buffer);
  template <typename Order>
  void fill(Order& order, const Operation& operation, std::span<const protocol::RmaIov> remote);
  void read_back(MessageNumber number);

  ApplicationEnvironment env_;
  SeededRandom random_;
  Quarantine& quarantine_;
  std::unordered_map<MessageNumber, Buffer> buffers_;
  std::size_t under_way_ = 0;
  std::uint64_t keys_ = 0;
};

}  // namespace cluster::sim
