#include "seal/sealed_burst.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace cluster::seal {
namespace {

/// The frame with `block` behind its header, as long as it will be when it is sealed.
void copy_frame(const link::OutFrame& frame, ConstBytes block, Bytes to) {
  constexpr std::size_t header_size = sizeof(wire::FrameHeader);
  const ConstBytes front = frame.pieces[0];
  std::memcpy(to.data(), front.data(), header_size);
  std::launder(reinterpret_cast<wire::FrameHeader*>(to.data()))->length =
      static_cast<std::uint16_t>(to.size());
  std::byte* end = std::copy(block.begin(), block.end(), to.data() + header_size);
  end = std::copy(front.begin() + header_size, front.end(), end);
  for (std::size_t i = 1; i < frame.count; ++i)
    end = std::copy(frame.pieces[i].begin(), frame.pieces[i].end(), end);
}

/// Sealing a frame takes about as long as one takes to come from memory: so the one after the next is asked for.
constexpr std::size_t kFramesAhead = 2;

void prefetch_frame(const link::OutFrame& frame) {
  for (std::size_t i = 0; i < frame.count; ++i) prefetch(frame.pieces[i]);
}

}  // namespace

std::size_t SealedBurst::fill(std::span<const link::OutFrame> frames, Association& association,
                              ConstBytes block) {
  frames = frames.first(std::min(frames.size(), frames_.size()));
  Bytes space(staging_.get(), kStagingBytes);
  for (count_ = 0; count_ < frames.size(); ++count_) {
    const link::OutFrame& frame = frames[count_];
    const std::size_t size = frame.size + block.size() + sizeof(wire::SealTrailer);
    if (size > space.size()) break;
    const Bytes place = space.first(size);
    copy_frame(frame, block, place);
    if (count_ + kFramesAhead < frames.size()) prefetch_frame(frames[count_ + kFramesAhead]);
    if (!association.seal(place, block.size())) break;
    link::OutFrame& sealed = frames_[count_];
    sealed.path = frame.path;
    sealed.count = sealed.size = 0;
    sealed.add(place);
    space = space.subspan(size);
  }
  return count_;
}

}  // namespace cluster::seal
