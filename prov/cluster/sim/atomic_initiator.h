// The part of an application that registers words for atomic operations, and operates on the words of all
// processes. Most operations target a few words of each process, so that several processes often change the
// same word at the same time.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/engine.h"
#include "sim/application_environment.h"
#include "sim/atomic_oracle.h"
#include "sim/quarantine.h"

namespace cluster::sim {

class AtomicInitiator {
 public:
  /// Registers the words of this incarnation, if the plan contains atomic operations.
  AtomicInitiator(const ApplicationEnvironment& environment, SeededRandom random, Quarantine& quarantine);

  /// Starts an operation. Returns false if the engine has no space for the operation, or if the peer has
  /// registered no words.
  bool start_operation(HostNumber to);
  void complete(const protocol::Completion& completion);
  std::size_t under_way() const { return under_way_; }

 private:
  struct Buffers {
    Quarantine::Buffer operands = {};
    Quarantine::Buffer comparands = {};
    Quarantine::Buffer results = {};
    std::size_t length = 0;
  };

  AtomicOperation draw_operation(HostNumber to, AtomicRegion& region);
  wire::AtomicOp draw_op(const AtomicRegion& region, std::size_t row);
  std::vector<std::uint64_t> draw_comparands(const AtomicAccess& access, const AtomicRegion& region);
  void compose(AtomicOperation shape);
  bool post(MessageNumber number);
  void release(Buffers& buffers);

  ApplicationEnvironment env_;
  SeededRandom random_;
  Quarantine& quarantine_;
  std::unordered_map<MessageNumber, Buffers> buffers_;
  MessageNumber retry_ = 0;  ///< composed, but not accepted by the engine yet; 0: none
  std::size_t under_way_ = 0;
};

}  // namespace cluster::sim
