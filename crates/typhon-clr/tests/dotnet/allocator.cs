// A program for the live tests: allocates, collects, and says what its own runtime counted.
//
// usage: allocator THREADS ROUNDS
// stdin:  one line starts the work, another one ends the program
// stdout: "ready" with counts so far; one "gc" line per collection it read about; "done" with final counts
//
// Compiled against a framework that lacks the newer parts of GC, which are therefore looked up by name.
using System;
using System.Collections.Generic;
using System.Reflection;
using System.Runtime;
using System.Text;
using System.Threading;

static class Allocator
{
    const BindingFlags Anything = BindingFlags.Instance | BindingFlags.Public | BindingFlags.NonPublic;

    static readonly object OutputLock = new object();
    static readonly HashSet<long> Seen = new HashSet<long>();
    static readonly MethodInfo TotalPause = typeof(GC).GetMethod("GetTotalPauseDuration");
    static readonly MethodInfo MemoryInfo = FindMemoryInfo();
    static readonly MethodInfo AllocatePinned = FindAllocatePinned();

    static void Main(string[] arguments)
    {
        int threads = int.Parse(arguments[0]);
        int rounds = int.Parse(arguments[1]);
        // Everything that the report needs is compiled and allocated before the counting begins.
        Report("warm");
        ReadMemoryInfo(false);
        Report("ready");
        Console.ReadLine();
        var workers = new List<Thread>();
        for (int i = 0; i < threads; i++)
        {
            int number = i;
            workers.Add(new Thread(() => Work(number, rounds)));
        }
        workers.ForEach(worker => worker.Start());
        workers.ForEach(worker => worker.Join());
        // A blocking collection waits for a background one that is still running.
        GC.Collect(2, GCCollectionMode.Forced, true);
        ReadMemoryInfo(true);
        Report("done");
        Console.ReadLine();
    }

    static void Work(int number, int rounds)
    {
        var random = new Random(number);
        var survivors = new List<byte[]>();
        for (int round = 0; round < rounds; round++)
        {
            for (int i = 0; i < 300; i++)
            {
                var block = new byte[random.Next(64, 16384)];
                if (i % 25 == 0) survivors.Add(block);
            }
            for (int i = 0; i < 6; i++)
            {
                var large = new byte[random.Next(85000, 400000)];
                if (i == 0) survivors.Add(large);
            }
            if (AllocatePinned != null && round % 4 == 0)
                survivors.Add((byte[])AllocatePinned.Invoke(null, new object[] { random.Next(1000, 40000), true }));
            if (survivors.Count > 900) survivors.RemoveRange(0, 450);
            Induce(round);
            if (number == 0) ReadMemoryInfo(true);
        }
        GC.KeepAlive(survivors);
    }

    static void Induce(int round)
    {
        switch (round % 12)
        {
            case 1: GC.Collect(0); break;
            case 3: GC.Collect(1); break;
            case 5: GC.Collect(2, GCCollectionMode.Forced, true); break;
            case 7: GC.Collect(2, GCCollectionMode.Forced, false); break;
            case 9: GC.Collect(2, GCCollectionMode.Optimized); break;
            case 11:
                GCSettings.LargeObjectHeapCompactionMode = GCLargeObjectHeapCompactionMode.CompactOnce;
                GC.Collect(2, GCCollectionMode.Forced, true, true);
                break;
        }
    }

    static void Report(string label)
    {
        var line = new StringBuilder(label);
        for (int generation = 0; generation <= 2; generation++) line.Append(' ').Append(GC.CollectionCount(generation));
        long pause = TotalPause == null ? -1 : ((TimeSpan)TotalPause.Invoke(null, null)).Ticks * 100;
        line.Append(' ').Append(pause);
        Print(line.ToString());
    }

    // "gc INDEX GENERATION CONCURRENT PROMOTED COMMITTED SIZE0..SIZE4" for the last collection of each sort.
    static void ReadMemoryInfo(bool print)
    {
        if (MemoryInfo == null) return;
        for (int kind = 1; kind <= 3; kind++)
        {
            object info = MemoryInfo.Invoke(null, new[] { Enum.ToObject(MemoryInfo.GetParameters()[0].ParameterType, kind) });
            object data = info.GetType().GetField("_data", Anything).GetValue(info);
            long index = Convert.ToInt64(Field(data, "_index"));
            if (index == 0 || !Seen.Add(index)) continue;
            var line = new StringBuilder("gc ").Append(index).Append(' ').Append(Field(data, "_generation"));
            line.Append(Convert.ToBoolean(Field(data, "_concurrent")) ? " 1 " : " 0 ");
            line.Append(Field(data, "_promotedBytes")).Append(' ').Append(Field(data, "_totalCommittedBytes"));
            for (int generation = 0; generation < 5; generation++)
            {
                object sizes = Field(data, "_generationInfo" + generation);
                line.Append(' ').Append(sizes.GetType().GetProperty("SizeAfterBytes").GetValue(sizes, null));
            }
            if (print) Print(line.ToString());
        }
    }

    static object Field(object data, string name)
    {
        return data.GetType().GetField(name, Anything).GetValue(data);
    }

    static void Print(string line)
    {
        lock (OutputLock)
        {
            Console.Out.WriteLine(line);
            Console.Out.Flush();
        }
    }

    static MethodInfo FindMemoryInfo()
    {
        foreach (var method in typeof(GC).GetMethods())
            if (method.Name == "GetGCMemoryInfo" && method.GetParameters().Length == 1) return method;
        return null;
    }

    static MethodInfo FindAllocatePinned()
    {
        foreach (var method in typeof(GC).GetMethods())
            if (method.Name == "AllocateArray") return method.MakeGenericMethod(typeof(byte));
        return null;
    }
}
