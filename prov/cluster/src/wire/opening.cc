#include "wire/opening.h"

#include <algorithm>

#include "wire/frame.h"

namespace cluster::wire {

void encode(const Opening& opening, OpeningBlock& out) {
  out = OpeningBlock{};
  out.size = sizeof(OpeningBlock);
  out.version_min = out.version_max = kVersion;
  out.session = opening.session;
  out.epoch = opening.epoch;
  out.family = opening.name.family() == SocketAddress::Family::v4 ? 4 : 6;
  out.port = opening.name.port();
  out.scope = opening.name.scope();
  const ConstBytes ip = opening.name.ip();
  std::copy(ip.begin(), ip.end(), reinterpret_cast<std::byte*>(out.ip));
  out.features = opening.features;
  out.frame_max = opening.frame_max;
  out.window = opening.window;
}

std::size_t decode(ConstBytes in, Opening& out) {
  if (in.size() < sizeof(OpeningBlock)) return 0;
  OpeningBlock block;
  std::memcpy(&block, in.data(), sizeof block);
  const std::size_t size = block.size;
  if (size < sizeof block || size > in.size()) return 0;
  if (block.version_min > kVersion || block.version_max < kVersion) return 0;
  const auto* ip = reinterpret_cast<const std::byte*>(block.ip);
  if (block.family == 4) {
    out.name = SocketAddress::v4(ip, block.port);
  } else if (block.family == 6) {
    out.name = SocketAddress::v6(ip, block.port, block.scope);
  } else {
    return 0;
  }
  out.session = block.session;
  out.epoch = block.epoch;
  out.features = block.features;
  out.frame_max = block.frame_max;
  out.window = block.window;
  const bool sane = out.session != 0 && out.window != 0 && !out.name.wildcard() && block.port != 0 &&
                    out.frame_max >= 512 && out.epoch < kEpochEnd;
  return sane ? size : 0;
}

}  // namespace cluster::wire
