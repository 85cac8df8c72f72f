// Windows over scattered buffers, compared with the same window of the plain concatenation for
// every offset and length.
#include "base/bytes.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace cluster {
namespace {

/// Buffers of the given sizes, each a heap block of its own so that a sanitizer sees every overrun.
class Scattered {
 public:
  explicit Scattered(const std::vector<std::size_t>& sizes) {
    std::uint8_t next = 1;
    for (const std::size_t size : sizes) {
      auto& block = blocks_.emplace_back(size);
      for (auto& byte : block) byte = std::byte{next++};
    }
    for (auto& block : blocks_) {
      slices_.emplace_back(block);
      const_slices_.emplace_back(block);
    }
  }
  std::vector<std::byte> joined() const {
    std::vector<std::byte> all;
    for (const auto& block : blocks_) all.insert(all.end(), block.begin(), block.end());
    return all;
  }
  std::span<const ConstBytes> slices() const { return const_slices_; }
  std::span<const Bytes> writable() const { return slices_; }

 private:
  std::vector<std::vector<std::byte>> blocks_;
  std::vector<Bytes> slices_;
  std::vector<ConstBytes> const_slices_;
};

const std::vector<std::vector<std::size_t>> kShapes = {
    {}, {0}, {5}, {1, 1, 1}, {3, 0, 4}, {0, 0, 2, 0}, {7, 1, 0, 0, 9, 2}};

TEST(Gather, CopiesEveryWindow) {
  for (const auto& shape : kShapes) {
    const Scattered scattered(shape);
    const auto all = scattered.joined();
    for (std::size_t offset = 0; offset <= all.size(); ++offset) {
      for (std::size_t length = 0; offset + length <= all.size(); ++length) {
        std::vector<std::byte> out(length);
        Gather{scattered.slices(), offset, length}.copy_to(out.data());
        const auto from = all.begin() + static_cast<std::ptrdiff_t>(offset);
        ASSERT_EQ(out, std::vector<std::byte>(from, from + static_cast<std::ptrdiff_t>(length)));
      }
    }
  }
}

TEST(Gather, PiecesMakeUpTheWindow) {
  for (const auto& shape : kShapes) {
    const Scattered scattered(shape);
    const auto all = scattered.joined();
    for (std::size_t offset = 0; offset <= all.size(); ++offset) {
      for (std::size_t length = 0; offset + length <= all.size(); ++length) {
        std::vector<ConstBytes> parts(shape.size());
        const std::size_t count = Gather{scattered.slices(), offset, length}.pieces(parts);
        std::vector<std::byte> out;
        for (std::size_t i = 0; i < count; ++i) {
          EXPECT_FALSE(parts[i].empty());
          out.insert(out.end(), parts[i].begin(), parts[i].end());
        }
        const auto from = all.begin() + static_cast<std::ptrdiff_t>(offset);
        ASSERT_EQ(out, std::vector<std::byte>(from, from + static_cast<std::ptrdiff_t>(length)));
      }
    }
  }
}

TEST(Gather, PiecesSayZeroWhenThereAreTooMany) {
  const Scattered scattered({2, 2, 2});
  std::array<ConstBytes, 2> two;
  EXPECT_EQ((Gather{scattered.slices(), 0, 6}.pieces(two)), 0u);
  EXPECT_EQ((Gather{scattered.slices(), 0, 5}.pieces(two)), 0u);
  EXPECT_EQ((Gather{scattered.slices(), 0, 4}.pieces(two)), 2u);
  EXPECT_EQ((Gather{scattered.slices(), 2, 4}.pieces(two)), 2u);
  EXPECT_EQ((Gather{scattered.slices(), 1, 2}.pieces(two)), 2u);
  EXPECT_EQ((Gather{scattered.slices(), 0, 1}.pieces({})), 0u);
}

TEST(Scatter, WritesEveryWindowAndNothingElse) {
  for (const auto& shape : kShapes) {
    const std::size_t size = Scattered(shape).joined().size();
    for (std::size_t offset = 0; offset <= size + 2; ++offset) {
      for (std::size_t length = 0; length <= size + 2; ++length) {
        Scattered scattered(shape);
        auto expected = scattered.joined();
        const std::vector<std::byte> data(length, std::byte{0xEE});
        std::size_t fits = 0;
        for (std::size_t i = offset; i < size && fits < length; ++i, ++fits) expected[i] = data[fits];
        EXPECT_EQ(scatter(scattered.writable(), offset, data), fits);
        ASSERT_EQ(scattered.joined(), expected) << "offset " << offset << " length " << length;
      }
    }
  }
}

TEST(AsBytes, KeepsAddressAndSize) {
  int value = 3;
  const ConstBytes reading = as_bytes(static_cast<const void*>(&value), sizeof value);
  const Bytes writing = as_bytes(static_cast<void*>(&value), sizeof value);
  EXPECT_EQ(static_cast<const void*>(reading.data()), &value);
  EXPECT_EQ(writing.size(), sizeof value);
}

TEST(Contiguous, BytesOfOneSliceOnly) {
  const Scattered memory({3, 0, 5});
  for (std::size_t offset = 0; offset <= 8; ++offset) {
    for (std::size_t length = 1; length <= 8 - offset; ++length) {
      const std::size_t end = offset < 3 ? 3 : 8;
      const ConstBytes piece = piece_at(memory.slices(), offset, length);
      EXPECT_EQ(piece.size(), std::min(length, end - offset)) << offset << " " << length;
      EXPECT_EQ(piece.front(), memory.joined()[offset]);
      EXPECT_EQ(contiguous(memory.slices(), offset, length).size(), offset + length <= end ? length : 0);
    }
  }
  EXPECT_TRUE(piece_at(memory.slices(), 8, 1).empty());
  EXPECT_TRUE(contiguous(memory.slices(), 8, 1).empty());
}

}  // namespace
}  // namespace cluster
