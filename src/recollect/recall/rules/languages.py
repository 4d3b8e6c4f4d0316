"""What is known of languages: their little words, and the scripts they are written in. Tables; `lexical` uses them."""

DEFAULT = "english"

# Little words by language. What two languages share tells nothing between them and does no harm.
# fmt: off
LITTLE_WORDS = {
    "english": "a an or the of and to in is are was were be been it this that these those with for on at by from as "
               "what when where who which how why has have had not do does did i you he she we they my your his her "
               "our their",
    "german": "der die das und ist nicht mit ein eine einen einer für auf von zu den dem des im wir ich sie es auch "
              "wie wann wo wer hat haben wird werden war sind bei nach über aus noch nur mein meine oder",
    "french": "le la les des est et une un dans pour que qui du au aux avec sur pas nous vous je il elle sont ne par "
              "ce cette mais où quand comment mon ma mes son ses leur été",
    "spanish": "el la los las de y es en un una que por para con no se su del al lo como más pero cuándo dónde qué "
               "quién mi mis sus fue está son hay muy también",
    "portuguese": "o a os as de e é em um uma que por para com não se seu sua do da dos das no na ao como mais mas "
                  "quando onde quem meu minha foi está são há muito também",
    "italian": "il lo la gli le di e è in un una che per con non si suo sua del della dei delle al alla come più ma "
               "quando dove chi mio mia sono stato ha hanno anche nel nella",
    "dutch": "de het een en van is niet met voor op aan te dat die in zijn ook wij ik je hij zij er maar om naar bij "
             "uit wat wanneer waar wie heeft hebben wordt mijn onze",
    "swedish": "och att det en ett är som på för inte med av till den jag vi du han hon de om men var när vad har "
               "hade min mitt mina eller också från",
    "norwegian": "og at det en et er som på for ikke med av til den jeg vi du han hun de om men var når hva har "
                 "hadde min mitt mine eller også fra",
    "danish": "og at det en et er som på for ikke med af til den jeg vi du han hun de om men var hvornår hvad har "
              "havde min mit mine eller også fra",
    "finnish": "ja on ei se että oli ovat mutta kun niin myös joka mitä missä milloin kuka minun minä sinä hän me te "
               "he tai kuin olen",
    "hungarian": "a az és nem hogy is egy van volt ez de meg mint csak vagy ki mi hol mikor hogyan én te ő mert már",
    "romanian": "și în de la cu pe nu este un o că din pentru care mai sau dar când unde cine cum au fost sunt meu "
                "mea ce se al ale",
    "turkish": "ve bir bu için de da ne ile mi mı ben sen o biz çok daha ama gibi var yok nasıl nerede kim olan "
               "değil",
    "catalan": "el la els les de i és en un una que per amb no es del al com més però quan on qui meu meva són també "
               "aquest aquesta",
    "polish": "i w na z nie się jest to do że o jak po za od przez dla czy kiedy gdzie kto mój moja był była są ale "
              "oraz",
    "czech": "a v na je se že s z do o k jak po za od pro kdy kde kdo můj moje byl byla jsou ale nebo jsem",
    "indonesian": "yang dan di itu ini dengan untuk tidak dari pada adalah akan saya kamu dia kami mereka ada apa "
                  "kapan mana siapa bagaimana juga atau ke",
    "lithuanian": "ir yra ne kad su iš į kaip bet ar tai buvo mano kada kur kas už prie apie jis ji mes",
    "estonian": "ja on ei see et oli aga kui ka mis kus millal kes minu mina sina tema meie või oma",
}

# What says nothing in a question, of the language that is taken for any other.
STOP_WORDS = frozenset([
    "a", "an", "the", "of", "to", "in", "on", "for", "and", "or", "is", "are", "was", "were", "be", "been", "do",
    "does", "did", "i", "you", "he", "she", "it", "we", "they", "my", "your", "his", "her", "its", "our", "their",
    "me", "him", "them", "this", "that", "these", "those", "with", "at", "by", "from", "as", "what", "when", "where",
    "who", "which", "how", "why", "has", "have", "had", "not",
])
# Words of asking: who asks to be told about somebody misses neither "tell" nor "about" in what is known of them.
ASKING = frozenset([
    "about", "tell", "know", "knows", "known", "anything", "something", "everything", "remember", "recall", "remind",
    "show", "find", "give", "please", "us", "happen", "happened", "happens",
])
# What questions are asked with in other languages, beside their little words. Notes seldom hold these, so a question
# would seem to ask for more than it does. Only questions are looked at with them: no text is indexed otherwise.
ASKED_WITH = {
    "german": "was wann wo wer wem wen wessen wie wieso warum weshalb welche welcher welches welchen welchem woher "
              "wohin womit wozu wird wurde wurden worden viel viele lange oft der unser unsere dein deine ihr ihre man "
              "kann soll muss darf gibt los",
    "french": "qui que quoi quel quelle quels quelles où quand comment combien pourquoi dont l d qu n j s c t m y en "
              "à a ai as ont avons avez fait faut il elle on notre votre mon ton ta tes sa nos vos ces cet de être "
              "va est ce",
    "spanish": "qué quién quiénes cuál cuáles cuánto cuánta cuántos cuántas cuándo cómo dónde adónde por a e o u ya me "
               "te le nos les ha han he era eran fue son ser nuestro nuestra tu tus esa ese esta este ahora",
    "portuguese": "que quem qual quais quanto quanta quantos quantas como onde aonde porquê me te nos lhe foi era tem "
                  "têm nosso nossa teu tua este esta esse essa",
    "italian": "che chi cosa quale quali quanto quanta quanti quante come dove perché l d un c s i ci mi ti vi ho hai "
               "era sono stata nostro nostra tuo tua questo questa da ai alle sul sulla",
    "dutch": "wat wie wanneer waar waarom hoe hoeveel welk welke waarmee waarheen was waren werd worden ons onze jouw "
             "deze dit kan moet mag",
    "swedish": "vad vem vilken vilket vilka var vart när hur varför många mycket blev vår vårt våra din ditt denna",
    "norwegian": "hva hvem hvilken hvilket hvilke hvor når hvordan hvorfor mange mye ble vår vårt våre din ditt denne",
    "danish": "hvad hvem hvilken hvilket hvilke hvor hvornår hvordan hvorfor mange meget blev vores din dit denne",
    "finnish": "mikä mitkä mihin mistä milloin miksi miten kuinka kenen kenelle monta paljon missä oliko onko meidän",
    "hungarian": "mi mit mikor hol hová honnan ki kit kinek melyik milyen mennyi hány miért hogyan volt lesz mennyibe",
    "romanian": "ce cine când unde cum cât câtă câți câte care cui pentru de ce are am ai fost era nostru noastră",
    "turkish": "ne neyi neye nede neden nesi nedir neydi niçin niye nasıl nerede nereden nereye kim kimi kime kimde "
               "kimden kimin kimdir hangi hangisi kaç kaça kaçta zaman mi mı mu mü bizim benim senin",
    "catalan": "què qui quin quina quins quines quan on com quant quanta quants quantes per a l d s n ha han va era",
    "polish": "co czego czemu czym kto kogo komu kim kiedy gdzie skąd dokąd jak jaki jaka jakie jakiej jakim który "
              "która które ile ilu za w we z ze o po przy ma mają mam będzie jest są nasz nasza mi się",
    "czech": "co čeho kdo koho komu kdy kde kam odkud jak jaký jaká jaké který která které kolik proč má mají bude "
             "náš naše",
    "indonesian": "apa siapa kapan di mana ke berapa bagaimana mengapa kenapa yang kita",
    "lithuanian": "kas ką ko kam kada kur kaip kiek koks kokia kuris kuri kodėl buvo mūsų",
    "estonian": "mis mida kes keda kelle millal kus kuhu kust kuidas palju mitu miks milline meie oli",
    "vietnamese": "ai gì nào đâu khi mấy bao nhiêu thế sao vì là của ở có được bị với và cho vào đã đang sẽ "
                  "không này đó thì những các một để lúc như ra",
}
# The same where the letters themselves tell the language.
ASKED_WITH_IN_OTHER_LETTERS = """
    кто кого кому кем что чего чему чем чём где куда откуда когда как какой какая какое какие какого какую каким каких
    сколько почему зачем чей чья чьё ли в во на с со у о об от до по за из к и а не это был была было были есть мы
    я ты он она они наш наша моя мой нас
    хто кого кому де куди звідки коли як який яка яке які скільки чому це був була було є ми в у на з до
    кой коя кое къде кога как колко защо е са
    ποιος ποια ποιο ποιον ποιοι ποιες τι που πού πότε πώς πως πόσο πόση πόσοι πόσες πόσα πόσων γιατί ο η το οι τα του
    της των τον την τη στο στη στον στην στα στις σε με από για και είναι ήταν έχει έχουν έχουμε δεν θα να ένα μια ως
    من ما ماذا متى أين كيف كم بكم لماذا أي أية هل إلى على في عن مع هو هي كان كانت هذا هذه التي الذي لا لمن مم
    چه کی کجا کدام چند چرا چگونه از در به با را است بود که این آن
    क्या कौन किस किसे किसने किसको किससे किसका किसकी कब कहाँ कहां कैसे कैसा कितना कितनी कितने कितनों क्यों का की के को ने में से
    पर है हैं था थी थे हो होगा होगी और हम हमारा हमारी हमारे वाला वाली एक
    מה מי מתי איפה איך כמה למה איזה איזו של את על עם זה היה הייתה הוא היא
"""
# Where words are not told apart, by what questions hold; whatever touches these is asking.
ASKED_WITH_IN_A_ROW = (
    "どこ|いつ|だれ|誰|何時|何歳|何曜日|何|なに|なぜ|どう|どの|どれ|いくら|いくつ|まで|から|です|ます|した|ある|いる|"
    "어디|언제|누가|누구|무엇|무슨|무얼|뭐|몇|얼마|어떻게|어느|어떤|왜|며칠|있어|했어|이야|이에요|입니까|"
    "ใคร|ที่ไหน|ไหน|อะไร|เท่าไร|เท่าไหร่|เมื่อไร|เมื่อไหร่|อย่างไร|ยังไง|กี่|ทำไม|คือ|"
    "谁|什么|哪里|哪儿|哪|几|多少|怎么|为什么|吗|呢|在"
)
# fmt: on
LANGUAGES_OF: dict[str, list[str]] = {}
for _language, _little in LITTLE_WORDS.items():
    for _word in set(_little.split()):
        LANGUAGES_OF.setdefault(_word, []).append(_language)

# Stemmers by script: the first is that of a text that does not say otherwise by letters of its own.
CYRILLIC, ARABIC = ("russian",), ("arabic", "persian")
NOT_RUSSIAN = frozenset("іїєґўђјљњћџѓќѕ")
NOT_ARABIC = frozenset("پچژگکی")
URDU = frozenset("ٹڈڑےں")
# Each script up to the character where the next begins.
BLOCKS = (
    (0x0250, "latin"),
    (0x0370, ""),
    (0x0400, "greek"),
    (0x0530, "cyrillic"),
    (0x0590, "armenian"),
    (0x0600, ""),
    (0x0700, "arabic"),
    (0x0900, ""),
    (0x0980, "hindi"),
    (0x0B80, ""),
    (0x0C00, "tamil"),
    (0x1E00, ""),
    (0x1F00, "latin"),
    (0x2000, "greek"),
)
# Scripts that put no space between words: CJK; Thai and Lao, Tibetan, Burmese, Khmer.
UNSPACED = "぀-ヿ㐀-䶿一-鿿가-힯豈-﫿\u0e00-\u0eff\u0f40-\u0fbc\u1000-\u109f\u1780-\u17ff"
# Letters of India and their vowel signs, which Python does not count among the letters; not their full stops.
INDIC = "\u0900-\u0963\u0971-\u0dff"
# What is dropped: accents of Latin, Greek and Cyrillic letters, vowel points of Hebrew and Arabic. The vowel signs of
# other scripts are as much a part of a word as its letters.
ACCENTS = "[\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed]"
# Letters that no normal form takes apart, and letters of Arabic script that keyboards mix up.
LIKE = {
    "đ": "d",
    "ð": "d",
    "ł": "l",
    "ø": "o",
    "æ": "ae",
    "œ": "oe",
    "þ": "th",
    "ħ": "h",
    "ı": "i",
    "ŋ": "n",
    "ŧ": "t",
} | {"ك": "ک", "ي": "ی", "ى": "ی", "ة": "ه"}
