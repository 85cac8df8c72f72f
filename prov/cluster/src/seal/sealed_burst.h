// Frames that are sealed and leave together. Each is copied to where the one before it ends, and sealed there: a link that gets
// a frame in several pieces takes longer than the copy does, and the library seals faster what lies in one piece.
#pragma once

#include <array>
#include <memory>
#include <span>

#include "link/link.h"
#include "seal/association.h"

namespace cluster::seal {

class SealedBurst {
 public:
  SealedBurst() : staging_(std::make_unique_for_overwrite<std::byte[]>(kStagingBytes)) {}

  /// Seals as many of `frames`, from the first on, as there is space for, in place of those of the last call; `block` is put
  /// behind the header of each, and is never encrypted. 0: the library cannot seal the first.
  std::size_t fill(std::span<const link::OutFrame> frames, Association& association, ConstBytes block = {});
  /// In use until the link has taken them.
  std::span<const link::OutFrame> frames() const { return {frames_.data(), count_}; }

 private:
  /// Two super-frames of an ordinary Ethernet, or one of jumbo frames; at least one frame of any link.
  static constexpr std::size_t kStagingBytes = 128 * 1024;

  std::unique_ptr<std::byte[]> staging_;
  std::array<link::OutFrame, link::kBurstMax> frames_;
  std::size_t count_ = 0;
};

}  // namespace cluster::seal
