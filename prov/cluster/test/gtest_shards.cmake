# A test program of GoogleTest as a few tests of ctest: a process per shard, not one per test, so that a check spends its
# time in the tests. Each shard writes what its single tests did to gtest/ in the build directory: util/check counts
# those, names the skipped ones and the slowest.
#
#   add_gtest_shards(TARGET LABEL <label> SHARDS <n> TIMEOUT <seconds>)
function(add_gtest_shards target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LABEL;SHARDS;TIMEOUT" "")
  math(EXPR last "${arg_SHARDS} - 1")
  foreach(shard RANGE ${last})
    math(EXPR number "${shard} + 1")
    set(name ${arg_LABEL}.${number}-of-${arg_SHARDS})
    add_test(NAME ${name} COMMAND ${target} --gtest_brief=1 --gtest_output=xml:${CMAKE_BINARY_DIR}/gtest/${name}.xml)
    set_tests_properties(${name} PROPERTIES LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT}
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${arg_SHARDS};GTEST_SHARD_INDEX=${shard}")
  endforeach()
endfunction()
