// Frames that are sealed and leave together, each as one piece: a link that gets a frame in five pieces takes longer than the
// copy does. All of it is in use until the link has taken the frames.
#pragma once

#include <array>
#include <memory>
#include <span>

#include "link/link.h"
#include "seal/association.h"

namespace cluster::seal {

class SealedBurst {
 public:
  explicit SealedBurst(Mode mode);

  void clear() {
    count_ = staged_ = 0;
    last_path_ = nullptr;
  }
  bool fits(const link::OutFrame& frame) const;
  /// One that fits. `block` is put behind its header, and is never encrypted. False: the library failed.
  bool add(const link::OutFrame& frame, Association& association, ConstBytes block = {});
  std::span<const link::OutFrame> frames() const { return {frames_.data(), count_}; }

 private:
  static constexpr std::size_t kOverheadMax = sizeof(wire::SealTrailer) + 32;  ///< trailer and block

  const link::Path* plain(const link::Path* path);

  /// Two super-frames of an ordinary Ethernet, or one of jumbo frames; at least one frame of any link.
  static constexpr std::size_t kStagingBytes = 128 * 1024;

  const bool encrypts_;
  std::unique_ptr<std::byte[]> staging_;
  std::size_t staged_ = 0;
  std::array<link::OutFrame, link::kBurstMax> frames_;
  std::array<link::Path, link::kBurstMax> paths_;  ///< of frames to addresses of a realm, without it
  const link::Path* last_path_ = nullptr;          ///< as it was given
  std::size_t count_ = 0;
};

}  // namespace cluster::seal
