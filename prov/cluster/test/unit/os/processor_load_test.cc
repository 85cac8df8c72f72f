#include "os/processor_load.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace cluster::os {
namespace {

class ProcessorLoadTest : public ::testing::Test {
 protected:
  ~ProcessorLoadTest() override { ::unlink(path_.c_str()); }
  unsigned threads(const std::string& text) {
    std::ofstream(path_) << text;
    return threads_per_processor(path_.c_str());
  }

  const std::string path_ = ::testing::TempDir() + "loadavg-" + std::to_string(::getpid());
  const unsigned processors_ = static_cast<unsigned>(::sysconf(_SC_NPROCESSORS_ONLN));
};

TEST_F(ProcessorLoadTest, CountsTheThreadsThatAreReadyToRun) {
  EXPECT_EQ(threads("88.10 60.02 3.00 " + std::to_string(50 * processors_) + "/1021 4711\n"), 50u);
  EXPECT_EQ(threads("0.00 0.00 0.00 " + std::to_string(processors_ + 1) + "/1021 4711\n"), 2u);
  EXPECT_EQ(threads("0.00 0.00 0.00 1/1021 4711\n"), 1u);
}

TEST_F(ProcessorLoadTest, IsOneIfTheKernelReportsNothing) {
  EXPECT_EQ(threads(""), 1u);
  EXPECT_EQ(threads("0.00 0.00"), 1u);
  EXPECT_EQ(threads("nothing at all"), 1u);
  EXPECT_EQ(threads_per_processor("/nowhere"), 1u);
}

TEST_F(ProcessorLoadTest, CountsItself) { EXPECT_GE(threads_per_processor(), 1u); }

}  // namespace
}  // namespace cluster::os
