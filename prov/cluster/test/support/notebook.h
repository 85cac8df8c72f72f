// A link that keeps what it is given, for tests that read what a flow says or hand it to another one
// themselves. Nothing ever comes by it.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "link/link.h"
#include "wire/admit.h"

namespace cluster::test {

class Notebook final : public link::Link {
 public:
  const char* name() const override { return "notebook"; }
  std::size_t frame_max() const override { return 1472; }
  std::size_t send_burst(std::span<const link::OutFrame> frames) override {
    for (const link::OutFrame& frame : frames) {
      std::vector<std::byte>& bytes = pages.emplace_back();
      for (std::size_t i = 0; i < frame.count; ++i) {
        bytes.insert(bytes.end(), frame.pieces[i].begin(), frame.pieces[i].end());
      }
    }
    return frames.size();
  }
  std::size_t receive_burst(std::span<link::InFrame>) override { return 0; }
  std::size_t read_path_errors(std::span<link::PathError>) override { return 0; }
  wire::FrameView read(std::size_t page) const {
    wire::FrameView view;
    EXPECT_EQ(wire::admit(pages.at(page), view), wire::Refusal::none);
    return view;
  }

  std::vector<std::vector<std::byte>> pages;
};

}  // namespace cluster::test
