// Frames that are sealed and leave together: their headers and trailers, and in mode encrypt what lies in
// between. All of it is in use until the link has taken the frames.
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

  void clear() { count_ = staged_ = 0; }
  bool fits(const link::OutFrame& frame) const;
  /// One that fits. False: the library failed.
  bool add(const link::OutFrame& frame, Association& association);
  std::span<const link::OutFrame> frames() const { return {frames_.data(), count_}; }

 private:
  /// Two super-frames of an ordinary Ethernet, or one of jumbo frames; at least one frame of any link.
  static constexpr std::size_t kStagingBytes = 128 * 1024;

  std::unique_ptr<std::byte[]> staging_;  ///< mode encrypt
  std::size_t staged_ = 0;
  std::array<link::OutFrame, link::kBurstMax> frames_;
  std::array<wire::FrameHeader, link::kBurstMax> headers_;
  std::array<wire::SealTrailer, link::kBurstMax> trailers_;
  std::size_t count_ = 0;
};

}  // namespace cluster::seal
